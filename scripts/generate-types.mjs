// Writes recipes/templates/types/recipe.d.ts: the declarations of `rollscope/recipe` as one file that imports nothing, which a new
// recipe takes along so that its types resolve without a network. `--check` compares instead of writing.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { rootDir } from "./paths.mjs";

const target = join(rootDir, "recipes", "templates", "types", "recipe.d.ts");
const api = join(rootDir, "agent-daemon", "src", "recipes", "api.ts");

const { config } = ts.readConfigFile(join(rootDir, "tsconfig.json"), ts.sys.readFile);
const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, rootDir);
const program = ts.createProgram([api], {
  ...options,
  noEmit: false,
  declaration: true,
  emitDeclarationOnly: true,
  outDir: "/types",
});
const checker = program.getTypeChecker();

const declarations = new Map();
program.emit(undefined, (path, text) => declarations.set(path, text), undefined, true);

/** Types that come out of a schema, written out: who reads the file has no schema library. */
function expanded(source) {
  const lines = [];
  ts.forEachChild(source, (node) => {
    if (!ts.isTypeAliasDeclaration(node)) return;
    const type = checker.getDeclaredTypeOfSymbol(checker.getSymbolAtLocation(node.name));
    const flags = ts.TypeFormatFlags.NoTruncation | ts.TypeFormatFlags.InTypeAlias;
    lines.push(`type ${node.name.text} = ${checker.typeToString(type, undefined, flags)};`);
  });
  return lines.join("\n");
}

const parts = [];
for (const source of program.getSourceFiles()) {
  if (source.isDeclarationFile || source.fileName === api) continue;
  const relative = source.fileName.slice(rootDir.length);
  const text = [...declarations].find(([path]) => path.endsWith(relative.replace(/\.ts$/, ".d.ts")))?.[1];
  if (text === undefined) continue;
  const usesSchemas = /from "zod"/.test(text);
  if (usesSchemas && /ZodError/.test(text)) continue;
  parts.push(usesSchemas ? expanded(source) : plain(text));
}
const apiText = [...declarations].find(([path]) => path.endsWith("recipes/api.d.ts"))[1];
parts.push(plain(apiText));

function plain(text) {
  return text
    .replace(/^(import|export)\s[^;]*\sfrom "[^"]*";\n/gm, "")
    .replace(/^export \{\};\n/gm, "")
    .replace(/^export (?=declare|interface|type|abstract)/gm, "")
    .trim();
}

/** Codes of a version would be wrong in the next one; to a recipe a code is a text. */
const codes = parts.findIndex((part) => part.includes("declare const errorCodes"));
parts[codes] = parts[codes]
  .replace(/interface CodeFacts \{[^}]*\}\n/, "")
  .replace(/(\/\*\* Every stable code\. \*\/\n)?declare const errorCodes: \{[^}]*\};\n/, "")
  .replace(/type ErrorCode = [^;]*;/, "type ErrorCode = string;");

/** `class RollscopeError` is a value, everything else says itself what it is. */
const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(api)));
const isValue = (symbol) => {
  const meant = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  return (meant.flags & ts.SymbolFlags.Value) !== 0;
};
const names = (values) =>
  exported
    .filter((symbol) => isValue(symbol) === values)
    .map((symbol) => symbol.name)
    .sort();
const text = `// Types of \`rollscope/recipe\`. Written by Rollscope; changes are lost when it is written again.
${parts.filter((part) => part !== "").join("\n\n")}

export { ${names(true).join(", ")} };
export type { ${names(false).join(", ")} };
`;

if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== text) {
    console.error("recipes/templates/types/recipe.d.ts is not current. Run: node scripts/generate-types.mjs");
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
  console.log("wrote recipes/templates/types/recipe.d.ts");
}
