// `rollscope data`: fetched data files, fetching them, and a look into a task file with its ids exact.
import { stat } from "node:fs/promises";
import type { JsonValue, TaskRow } from "../../../../protocol/agent.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { cacheFolder } from "../../recipes/cacheFolder.ts";
import { listEntries } from "../../recipes/modelCache.ts";
import { ensureDataFile } from "../../recipes/models.ts";
import { readTaskFile } from "../../recipes/taskFile.ts";
import type { ExitName } from "../exitCodes.ts";
import { formatJson } from "../jsonOutput.ts";
import type { Output } from "../output.ts";
import { formatBytes } from "../terminal/numbers.ts";
import { renderTable } from "../terminal/table.ts";
import { truncate, visible } from "../terminal/text.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export async function listData(environment: Environment, output: Output): Promise<ExitName> {
  const cache = cacheFolder(environment);
  const entries = await listEntries(cache, "data");
  output.document({ cache, data: entries });
  if (output.json) return "ok";
  if (entries.length === 0) {
    output.lines([`No data in ${cache}. \`rollscope data fetch hf://datasets/OWNER/NAME/FILE\` fetches a file.`]);
    return "ok";
  }
  const rows = entries.map((entry) => [visible(entry.source), formatBytes(entry.bytes), entry.folder]);
  output.lines(
    renderTable([{ title: "data" }, { title: "size", align: "right" }, { title: "where" }], rows, output.width),
  );
  return "ok";
}

export async function fetchData(
  source: string,
  environment: Environment,
  signal: AbortSignal,
  output: Output,
): Promise<ExitName> {
  const file = await ensureDataFile(source, { environment, signal });
  if ((await stat(file).catch(() => null)) === null) {
    throw new RollscopeError("DATA_FILE_NOT_FOUND", `There is no file ${file}.`, {
      next: "Write hf://datasets/owner/name/path/to/file.jsonl for a file of a Hugging Face data set.",
      at: { path: file },
    });
  }
  output.document({ source, file });
  if (!output.json) output.lines([file]);
  return "ok";
}

interface FieldFacts {
  readonly name: string;
  readonly types: string[];
  /** Rows that have it. */
  rows: number;
}

function typeOf(value: JsonValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  if (typeof value === "bigint") return "integer";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

/** @param limit rows to show */
export async function inspectData(
  source: string,
  limit: number,
  environment: Environment,
  output: Output,
): Promise<ExitName> {
  const file = await ensureDataFile(source, { environment });
  const fields = new Map<string, FieldFacts>();
  const shown: { readonly line: number; readonly payload: TaskRow }[] = [];
  let rows = 0;
  for await (const { line, payload } of readTaskFile(file, {})) {
    rows += 1;
    if (shown.length < limit) shown.push({ line, payload });
    for (const [name, value] of Object.entries(payload)) {
      const facts = fields.get(name) ?? { name, types: [], rows: 0 };
      facts.rows += 1;
      if (!facts.types.includes(typeOf(value))) facts.types.push(typeOf(value));
      fields.set(name, facts);
    }
  }
  output.document({ file, rows, fields: [...fields.values()], shown });
  if (output.json) return "ok";
  const table = [...fields.values()].map((field) => [
    visible(field.name),
    field.types.join(", "),
    field.rows === rows ? "all" : String(field.rows),
  ]);
  output.lines([
    `${file}: ${rows} rows`,
    "",
    ...renderTable([{ title: "field" }, { title: "type" }, { title: "rows" }], table, output.width),
    "",
    ...shown.map(({ line, payload }) => {
      const text = visible(formatJson(payload).replace(/\n\s*/g, " "));
      return `${line}: ${output.width === null ? text : truncate(text, output.width - String(line).length - 2)}`;
    }),
  ]);
  return "ok";
}
