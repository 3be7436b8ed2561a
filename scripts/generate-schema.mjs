// Writes protocol/recipe.schema.json from the schema in protocol/recipe.ts, for editors that complete and check
// recipe.yaml. `--check` compares instead of writing.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = `${root}protocol/recipe.schema.json`;

const bundle = await build({
  entryPoints: [`${root}protocol/recipeJsonSchema.ts`],
  bundle: true,
  format: "esm",
  platform: "node",
  write: false,
});
const code = Buffer.from(bundle.outputFiles[0].contents).toString("base64");
const { recipeJsonSchema } = await import(`data:text/javascript;base64,${code}`);
const text = `${JSON.stringify(recipeJsonSchema(), null, 2)}\n`;

if (process.argv.includes("--check")) {
  const present = await readFile(target, "utf8").catch(() => "");
  if (present !== text) {
    console.error("protocol/recipe.schema.json is not current. Run: node scripts/generate-schema.mjs");
    process.exit(1);
  }
} else {
  await writeFile(target, text);
  console.log("wrote protocol/recipe.schema.json");
}
