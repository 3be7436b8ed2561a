// Type errors of a recipe's code, by the TypeScript that the person has. `check` shows them; a run never needs them, so a
// machine without TypeScript only gets a note.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type * as TypeScript from "typescript";
import type { CodeProblem } from "./loadRecipe.ts";
import { shippedPath } from "./shippedFiles.ts";

export type TypeCheck =
  | { readonly kind: "checked"; readonly problems: readonly CodeProblem[] }
  | { readonly kind: "skipped"; readonly because: string };

/** The recipe's own TypeScript, else the one beside the product. The name is a variable so that no bundle takes it in. */
async function findTypeScript(file: string): Promise<typeof TypeScript | null> {
  const name = "typescript";
  for (const from of [pathToFileURL(file).href, import.meta.url]) {
    try {
      const path = createRequire(from).resolve(name);
      const loaded = (await import(/* @vite-ignore */ pathToFileURL(path).href)) as { default: typeof TypeScript };
      return loaded.default;
    } catch {
      // Not installed there: the next place may have it.
    }
  }
  return null;
}

/** Type-checks recipe.ts and what it imports. */
export async function checkTypes(file: string): Promise<TypeCheck> {
  if (!file.endsWith(".ts")) return { kind: "checked", problems: [] };
  const source = fileURLToPath(new URL("./api.ts", import.meta.url));
  const api = existsSync(source) ? source : shippedPath("recipes", "templates", "types", "recipe.d.ts");
  const nodeTypes = join(dirname(shippedPath("recipes")), "node_modules", "@types");
  const ts = await findTypeScript(file);
  if (ts === null) return { kind: "skipped", because: "TypeScript is not installed" };

  const options: TypeScript.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    resolveJsonModule: true,
    // Without the declarations of Node, those of the web have what both know: timers, URL, fetch, AbortSignal.
    ...(existsSync(nodeTypes)
      ? { types: ["node"], typeRoots: [nodeTypes] }
      : { types: [], lib: ["lib.es2023.d.ts", "lib.dom.d.ts"] }),
    paths: { "rollscope/recipe": [api] },
  };
  const program = ts.createProgram([file], options);
  const folder = dirname(file);
  const own = program
    .getSourceFiles()
    .filter(({ fileName }) => !relative(folder, fileName).startsWith("..") && !fileName.includes("/node_modules/"));
  const problems = own
    .flatMap((source) => [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)])
    .map((diagnostic): CodeProblem => {
      const place = diagnostic.file?.getLineAndCharacterOfPosition(diagnostic.start ?? 0);
      const path = diagnostic.file?.fileName ?? file;
      const inside = relative(process.cwd(), path);
      return {
        file: inside.startsWith("..") ? path : inside,
        line: (place?.line ?? 0) + 1,
        column: (place?.character ?? 0) + 1,
        sentence: ts.flattenDiagnosticMessageText(diagnostic.messageText, " "),
      };
    });
  return { kind: "checked", problems };
}
