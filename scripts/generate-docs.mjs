// Writes the tables of docs/ that come from code: the keys of recipe.yaml, the knobs of other stacks, the error codes, the exit codes, the metrics. A
// table stands between two comments, <!-- generated: NAME --> and <!-- end -->. `--check` compares instead of writing.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { rootDir } from "./paths.mjs";

const { recipeJsonSchema, errorCodes, exitCodes, exitOfError, stepMetricDefinitions, stepTimingDefinitions, ...seed } =
  await importSources(`
    export { laterParts, seedKnobs } from "./protocol/seedKnobs.ts";
    export { recipeJsonSchema } from "./protocol/recipeJsonSchema.ts";
    export { errorCodes } from "./protocol/errors.ts";
    export { stepMetricDefinitions, stepTimingDefinitions } from "./protocol/metrics.ts";
    export { exitCodes, exitOfError } from "./agent-daemon/src/cli/exitCodes.ts";
  `);

const tables = {
  "docs/RECIPES.md": { keys: keyTables(recipeJsonSchema()) },
  "docs/KNOBS.md": { agentrl: knobTable("agentrl"), axisrl: knobTable("axisrl") },
  "docs/ERRORS.md": { codes: errorTables() },
  "docs/CLI.md": { "exit codes": exitTable(), metrics: metricTable() },
};

const stale = [];
for (const [file, parts] of Object.entries(tables)) {
  const path = join(rootDir, file);
  const present = await readFile(path, "utf8");
  const text = Object.entries(parts).reduce((whole, [name, lines]) => replaced(whole, file, name, lines), present);
  if (text === present) continue;
  stale.push(file);
  if (!process.argv.includes("--check")) await writeFile(path, text);
}
if (process.argv.includes("--check") && stale.length > 0) {
  console.error(`${stale.join(", ")}: not current. Run: node scripts/generate-docs.mjs`);
  process.exit(1);
}
console.log(stale.length === 0 ? "docs are current" : `wrote ${stale.join(", ")}`);

/** Bundles a module of re-exports and imports it. */
async function importSources(contents) {
  const bundled = await build({
    stdin: { contents, resolveDir: rootDir, loader: "ts" },
    bundle: true,
    format: "esm",
    platform: "node",
    write: false,
  });
  const code = Buffer.from(bundled.outputFiles[0].contents).toString("base64");
  return await import(`data:text/javascript;base64,${code}`);
}

function replaced(text, file, name, lines) {
  const begin = `<!-- generated: ${name} -->`;
  const from = text.indexOf(begin);
  const to = text.indexOf("<!-- end -->", from);
  if (from < 0 || to < 0) throw new Error(`${file} has no table "${begin}" that ends`);
  return `${text.slice(0, from + begin.length)}\n${lines.join("\n")}\n${text.slice(to)}`;
}

function table(titles, rows) {
  const row = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [row(titles), `|${titles.map(() => "---").join("|")}|`, ...rows.map(row)];
}

/** One table a section of recipe.yaml; keys that are no section share the first. */
function keyTables(schema) {
  const titles = ["key", "value", "default", "meaning"];
  const isSection = (node) => node.properties !== undefined;
  const entries = Object.entries(schema.properties);
  const single = entries.filter(([, node]) => !isSection(node));
  const parts = entries
    .filter(([, node]) => isSection(node))
    .flatMap(([key, node]) => {
      const rows = keyRows(node, [key]);
      return [`### ${key}`, "", node.description, "", ...(rows.length === 0 ? [] : [...table(titles, rows), ""])];
    });
  const plain = single.map(([key, node]) => keyRow([key], node, schema.required.includes(key)));
  return ["", "### Top level", "", ...table(titles, plain), "", ...parts];
}

function keyRows(section, path) {
  return Object.entries(section.properties).flatMap(([key, node]) => {
    const here = [...path, key];
    const required = section.required?.includes(key) ?? false;
    if (node.properties === undefined) return [keyRow(here, node, required)];
    const whole = node.default === undefined ? [keyRow(here, node, required)] : [];
    return [...whole, ...keyRows(node, here)];
  });
}

function keyRow(path, node, required) {
  const preset = node.default === undefined ? (required ? "**needed**" : "absent") : code(JSON.stringify(node.default));
  return [code(path.join(".")), valuesOf(node), preset, node.description ?? ""];
}

/** What may be written, in words. */
function valuesOf(node) {
  if (node.enum !== undefined) return node.enum.map(code).join(", ");
  if (node.anyOf !== undefined) return node.anyOf.map(valuesOf).join(" or ");
  switch (node.type) {
    case "null":
      return code("null");
    case "string":
      return "text";
    case "boolean":
      return `${code("true")}, ${code("false")}`;
    case "integer":
    case "number":
      return `${node.type}${bounds(node)}`;
    case "array":
      return node.prefixItems === undefined
        ? `list of ${valuesOf(node.items)}`
        : `[${node.prefixItems.map(valuesOf).join(", ")}]`;
    default:
      return node.properties === undefined ? "map" : "section";
  }
}

function bounds(node) {
  const limits = [
    [">", node.exclusiveMinimum],
    ["≥", node.minimum],
    ["<", node.exclusiveMaximum],
    ["≤", node.maximum === Number.MAX_SAFE_INTEGER ? undefined : node.maximum],
  ];
  const named = limits.filter(([, limit]) => limit !== undefined).map(([sign, limit]) => `${sign} ${limit}`);
  return named.length === 0 ? "" : ` ${named.join(", ")}`;
}

function code(text) {
  return `\`${text}\``;
}

/** What each knob of another stack is called here, or why it is not there. */
function knobTable(stack) {
  const rows = seed.seedKnobs
    .filter((knob) => knob.stack === stack)
    .map(({ path, counterpart }) => {
      if (counterpart.kind === "key") return [code(path), code(counterpart.key), counterpart.note ?? ""];
      if (counterpart.kind === "refused") return [code(path), "refused", counterpart.reason];
      return [code(path), `part ${counterpart.part}`, `not available yet: ${seed.laterParts[counterpart.part]}`];
    });
  return table(["knob", "here", ""], rows);
}

/** One table an area, which is the first word of a code. */
function errorTables() {
  const areas = new Map();
  for (const entry of Object.entries(errorCodes)) {
    const area = entry[0].slice(0, entry[0].indexOf("_"));
    areas.set(area, [...(areas.get(area) ?? []), entry]);
  }
  return [...areas].flatMap(([area, codes]) => [
    "",
    `### ${area}`,
    "",
    ...table(
      ["code", "meaning", "again?"],
      codes.map(([name, { meaning, retryable }]) => [code(name), meaning, retryable ? "may succeed" : ""]),
    ),
  ]);
}

function exitTable() {
  const ending = (name) => Object.keys(errorCodes).filter((each) => exitOfError(each) === name);
  const rows = Object.entries(exitCodes).map(([name, exit]) => {
    const codes = name === "failed" ? "every other code" : ending(name).map(code).join(", ");
    return [String(exit.code), exit.meaning, codes];
  });
  return table(["exit", "meaning", "error codes that end a command with it"], rows);
}

function metricTable() {
  const rows = Object.entries({ ...stepMetricDefinitions, ...stepTimingDefinitions }).map(([name, metric]) => [
    code(name),
    metric.unit,
    metric.description,
  ]);
  return table(["metric", "unit", "meaning"], rows);
}
