// `rollscope query RUN`: the trajectories of a run that pass a filter, as the editor's list shows them, with the index that answered.
import { type DaemonParams, trajectoryFilterSchema, trajectoryOrders } from "../../../../protocol/daemonMethods.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { listRecords } from "../../daemon/trajectories/recordRows.ts";
import { findRun } from "../../runs/runFolder.ts";
import type { ExitName } from "../exitCodes.ts";
import { openStores } from "../openRun.ts";
import type { Output } from "../output.ts";
import { formatNumber } from "../terminal/numbers.ts";
import { renderTable } from "../terminal/table.ts";

/** As typed; ranges are `min..max`, `min..`, `..max` or one number. */
export interface QueryOptions {
  readonly step?: number | undefined;
  readonly task?: string | undefined;
  readonly split?: string | undefined;
  readonly status?: string | undefined;
  readonly score?: string | undefined;
  readonly turns?: string | undefined;
  readonly length?: string | undefined;
  readonly staleness?: string | undefined;
  readonly mismatch?: string | undefined;
  readonly drifted?: boolean | undefined;
  readonly truncated?: boolean | undefined;
  readonly toolErrors?: boolean | undefined;
  readonly text?: string | undefined;
  readonly order?: string | undefined;
  readonly ascending?: boolean | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

function range(option: string, text: string | undefined): { min?: number; max?: number } | undefined {
  if (text === undefined) return undefined;
  const ends = text.split("..");
  const [min, max = min] = ends.map((end) => (end.trim() === "" ? undefined : Number(end)));
  const upper = ends.length === 2 && ends[1]!.trim() === "" ? undefined : max;
  if (ends.length > 2 || Number.isNaN(min) || Number.isNaN(upper) || (min === undefined && upper === undefined)) {
    throw new RollscopeError("COMMAND_INVALID", `${option} ${text} is no range.`, {
      next: `Write \`${option} 0.5..1\`, \`${option} 0.5..\`, \`${option} ..1\` or one number.`,
    });
  }
  return { ...(min === undefined ? {} : { min }), ...(upper === undefined ? {} : { max: upper }) };
}

function orderOf(order: string | undefined): (typeof trajectoryOrders)[number] {
  const known = trajectoryOrders.find((name) => name === (order ?? "created"));
  if (known !== undefined) return known;
  throw new RollscopeError("COMMAND_INVALID", `--order ${order} is not known.`, {
    next: `Choose one of ${trajectoryOrders.join(", ")}.`,
  });
}

function filterOf(options: QueryOptions): DaemonParams<"trajectories/list">["filter"] {
  const { step, task, split, status, drifted, truncated, toolErrors, text } = options;
  const filter = {
    step,
    task,
    split,
    status: status?.split(","),
    score: range("--score", options.score),
    turns: range("--turns", options.turns),
    outputTokens: range("--length", options.length),
    staleness: range("--staleness", options.staleness),
    mismatch: range("--mismatch", options.mismatch),
    drifted,
    truncated,
    toolErrors,
    text,
  };
  const parsed = trajectoryFilterSchema.safeParse(filter);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new RollscopeError("COMMAND_INVALID", `--${issue?.path.join(".")}: ${issue?.message}.`, {
    next: "`rollscope query --help` lists the options.",
  });
}

export async function queryCommand(
  wanted: string,
  options: QueryOptions,
  outputDir: string,
  output: Output,
): Promise<ExitName> {
  const folder = findRun(wanted, outputDir);
  const filter = filterOf(options);
  const order = orderOf(options.order);
  const stores = await openStores(folder);
  try {
    const found = await listRecords(
      { folder: folder.path, run: folder.run, store: stores.store, blobs: stores.blobs },
      {
        folder: folder.path,
        filter,
        order,
        descending: options.ascending !== true,
        limit: options.limit,
        after: options.after ?? null,
      },
    );
    output.document(found);
    if (output.json) return "ok";
    const right = { align: "right" as const };
    const number = (value: number | null) => (value === null ? "" : formatNumber(value));
    output.lines([
      ...renderTable(
        [
          { title: "record" },
          { title: "status" },
          { title: "score", ...right },
          { title: "turns", ...right },
          { title: "tokens", ...right },
          { title: "stale", ...right },
          { title: "mismatch", ...right },
          { title: "drift", ...right },
          { title: "steps", ...right },
        ],
        found.rows.map((row) => [
          row.id,
          row.error === null ? row.status : `${row.status} ${row.error.code}`,
          number(row.score),
          String(row.turns ?? ""),
          String(row.outputTokens ?? ""),
          number(row.staleness),
          number(row.mismatch),
          String(row.driftedCalls),
          row.steps.join(","),
        ]),
        output.width,
      ),
      `${found.rows.length} of ${found.total} records, answered by the index ${found.index}.` +
        (found.next === null ? "" : ` More with --after '${found.next}'.`),
    ]);
    return "ok";
  } finally {
    await stores.dispose();
  }
}
