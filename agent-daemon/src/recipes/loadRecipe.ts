// Loads the code of a recipe: recipe.ts and what it imports are bundled, with source maps, and imported. Runs only where the
// recipe runs; the daemon never calls it. What the code got wrong is reported with its file and line.
import { createHash } from "node:crypto";
import { mkdir, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { type BuildFailure, build, type Message } from "esbuild";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { RecipeDefinition } from "../../../protocol/recipeDefinition.ts";
import { cacheFolder } from "./cacheFolder.ts";
import { forbidExit } from "./processGuard.ts";
import { offerRecipeApi, recipeApiPlugin } from "./recipeApiPlugin.ts";

export interface LoadedRecipe {
  readonly definition: RecipeDefinition;
  /** Absolute path of recipe.ts. */
  readonly file: string;
  /** SHA-256 of the bundled code, which names what ran. */
  readonly codeHash: string;
}

export interface LoadOptions {
  /** Where the bundle is written; default is the cache folder. */
  readonly bundleFolder?: string;
  /** Most time that importing may take; default 60 seconds. */
  readonly importMilliseconds?: number;
  readonly signal?: AbortSignal;
}

/** A message of the bundler: file as the person sees it, line from 1, column from 1. */
export interface CodeProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly sentence: string;
}

/** The file that holds the recipe's code. @throws RECIPE_NOT_FOUND */
export async function findRecipeCode(folder: string): Promise<string> {
  for (const name of ["recipe.ts", "recipe.js", "recipe.mjs"]) {
    const file = join(folder, name);
    if ((await stat(file).catch(() => null))?.isFile()) return file;
  }
  throw new RollscopeError("RECIPE_NOT_FOUND", `There is no recipe.ts in ${folder}.`, {
    next: "Write recipe.ts with `export default defineRecipe({ rollout, evaluate })`.",
    at: { folder },
  });
}

function describe(message: Message, folder: string): CodeProblem {
  const { location } = message;
  const file = location === null ? "recipe.ts" : shownPath(join(folder, location.file));
  return { file, line: location?.line ?? 1, column: (location?.column ?? 0) + 1, sentence: message.text };
}

function shownPath(file: string): string {
  const inside = relative(process.cwd(), file);
  return inside.startsWith("..") ? file : inside;
}

/** Bundles the code; syntax errors and imports that cannot be found come back as a list. */
export async function bundleRecipe(file: string): Promise<{ code: string } | { problems: CodeProblem[] }> {
  const folder = dirname(file);
  const here = {
    "import.meta.url": JSON.stringify(pathToFileURL(file).href),
    "import.meta.dirname": JSON.stringify(folder),
    "import.meta.filename": JSON.stringify(file),
  };
  try {
    const result = await build({
      entryPoints: [file],
      absWorkingDir: folder,
      outfile: "recipe.mjs",
      bundle: true,
      write: false,
      format: "esm",
      platform: "node",
      target: "node20",
      sourcemap: "inline",
      sourceRoot: pathToFileURL(`${folder}/`).href,
      sourcesContent: true,
      keepNames: true,
      define: here,
      banner: {
        js: `import { createRequire as recipeRequire } from "node:module"; const require = recipeRequire(${here["import.meta.url"]});`,
      },
      tsconfigRaw: { compilerOptions: { target: "es2022", useDefineForClassFields: true } },
      plugins: [recipeApiPlugin],
      logLevel: "silent",
    });
    return { code: result.outputFiles[0]!.text };
  } catch (error) {
    const failure = error as Partial<BuildFailure>;
    if (!Array.isArray(failure.errors)) throw error;
    return { problems: failure.errors.map((message) => describe(message, folder)) };
  }
}

/** The file is named by its content and appears whole, so that any number of processes may load at once. */
async function writeBundle(folder: string, code: string, hash: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `recipe-${hash.slice(0, 32)}.mjs`);
  const draft = `${file}.${process.pid}.${Math.random().toString(36).slice(2)}`;
  await writeFile(draft, code, { mode: 0o600 });
  await rename(draft, file);
  return file;
}

/**
 * Loads the recipe of a folder.
 *
 * @throws RECIPE_NOT_FOUND no recipe.ts; RECIPE_CODE_INVALID it cannot be compiled; RECIPE_CODE_FAILED it threw while it was
 * imported; RECIPE_DEFINITION_INVALID its default export is no recipe
 */
export async function loadRecipe(folder: string, options: LoadOptions = {}): Promise<LoadedRecipe> {
  const file = await findRecipeCode(folder);
  const bundled = await bundleRecipe(file);
  if ("problems" in bundled) throw codeError(bundled.problems);
  const codeHash = createHash("sha256").update(bundled.code).digest("hex");
  const target = await writeBundle(options.bundleFolder ?? join(cacheFolder(), "recipes"), bundled.code, codeHash);
  offerRecipeApi();
  process.setSourceMapsEnabled(true);
  let exported: { default?: unknown };
  const exit = forbidExit();
  try {
    exported = await withinTime(
      import(/* @vite-ignore */ pathToFileURL(target).href) as Promise<{ default?: unknown }>,
      options.importMilliseconds ?? 60_000,
      options.signal,
    );
  } catch (error) {
    if (options.signal?.aborted === true) throw error;
    const said = error instanceof Error ? error.message : String(error);
    throw new RollscopeError("RECIPE_CODE_FAILED", `${shownPath(file)} failed while it was loaded: ${said}`, {
      next: "Correct the code that runs when the file is imported; the cause's stack names the line.",
      cause: error,
      at: { file: shownPath(file) },
    });
  } finally {
    exit.dispose();
  }
  return { definition: readDefinition(exported.default, shownPath(file)), file, codeHash };
}

/** Code that awaits something at its top level which never comes would hold its caller, or end the process without a word. */
function withinTime<T>(work: Promise<T>, milliseconds: number, signal: AbortSignal | undefined): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = () => reject(signal?.reason);
    const timer = setTimeout(
      () =>
        reject(
          new Error(`it was not over after ${milliseconds / 1000} s; something awaited at its top level never came`),
        ),
      milliseconds,
    );
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    });
  });
}

export function codeError(problems: readonly CodeProblem[]): RollscopeError {
  const first = problems[0];
  const list = problems.map((p) => `${p.file}:${p.line}:${p.column}: ${p.sentence}`).join("\n");
  return new RollscopeError("RECIPE_CODE_INVALID", `The recipe's code cannot be compiled.\n${list}`, {
    next: "Correct the lines above.",
    at: first === undefined ? {} : { file: first.file, line: first.line, column: first.column },
  });
}

function readDefinition(value: unknown, file: string): RecipeDefinition {
  const refuse = (what: string): never => {
    throw new RollscopeError("RECIPE_DEFINITION_INVALID", `${file} ${what}.`, {
      next: "Write `export default defineRecipe({ rollout, evaluate })`, both functions.",
      at: { file },
    });
  };
  if (typeof value !== "object" || value === null) return refuse("has no recipe as its default export");
  const { rollout, evaluate, objective, ...rest } = value as Partial<RecipeDefinition> & Record<string, unknown>;
  if (typeof rollout !== "function") return refuse("has no function `rollout` in its recipe");
  if (typeof evaluate !== "function") return refuse("has no function `evaluate` in its recipe");
  const unknown = Object.keys(rest);
  if (unknown.length > 0) return refuse(`has a recipe with unknown parts: ${unknown.join(", ")}`);
  if (objective === undefined) return { rollout, evaluate };
  if (typeof objective !== "object" || objective === null) return refuse("has an objective that is no object");
  if (typeof objective.name !== "string" || objective.name === "") return refuse("has an objective without a name");
  const run = objective.scope === "unit" ? objective.unit : objective.scope === "token" ? objective.token : undefined;
  if (typeof run !== "function")
    return refuse("has an objective that is neither { scope: 'token', token } nor { scope: 'unit', unit }");
  return { rollout, evaluate, objective };
}
