// `rollscope inspect RUN [RECORD]`: the records of a run, or one trajectory token by token with its numbers.
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { RecordDocument } from "../../../../protocol/record.ts";
import { findRun, type RunFolder } from "../../runs/runFolder.ts";
import type { RecordFilter } from "../../store/interface.ts";
import { type LoadedCall, type LoadedTrajectory, loadTrajectory } from "../../store/loadTrajectory.ts";
import { allDocuments, everyDocument } from "../../store/pages.ts";
import type { ExitName } from "../exitCodes.ts";
import { renderTrajectory, type ShownCall } from "../inspect/renderTrajectory.ts";
import { type TokenRow, tokenRows, tokenTotals, trainingOf } from "../inspect/tokenTable.ts";
import { modelTextOf, type OpenRun, openStores } from "../openRun.ts";
import type { Output } from "../output.ts";
import { formatNumber } from "../terminal/numbers.ts";
import { renderTable } from "../terminal/table.ts";
import { visible } from "../terminal/text.ts";

export interface InspectOptions {
  /** Records that this optimizer step trained; of a record, what this step made of its tokens. */
  readonly step: number | null;
  /** Records of this task: its id, or the id of its group. */
  readonly group: string | null;
  /** Records: so many, lowest score first. A record: so many tokens, least likely first. */
  readonly worst: number | null;
  readonly limit: number;
}

export async function inspectCommand(
  wanted: string,
  record: string | null,
  options: InspectOptions,
  outputDir: string,
  output: Output,
): Promise<ExitName> {
  const folder = findRun(wanted, outputDir);
  const run = await openStores(folder);
  try {
    if (record === null) await listRecords(folder, run, options, output);
    else await showRecord(folder, run, record, options, output);
    return "ok";
  } finally {
    await run.dispose();
  }
}

/** Ids of the step documents with this number that count. */
async function stepDocument(folder: RunFolder, { store }: OpenRun, step: number): Promise<string> {
  const [found] = await allDocuments(store.steps, { run: folder.run, step });
  if (found !== undefined) return found.id;
  throw new RollscopeError("COMMAND_INVALID", `The run ${folder.run} has no step ${step}.`, {
    next: "Steps count from 1; `rollscope list` shows how far the run is.",
    at: { run: folder.run, step },
  });
}

async function recordsOf(folder: RunFolder, run: OpenRun, options: InspectOptions): Promise<RecordDocument[]> {
  const limit = options.worst ?? options.limit;
  const filter: RecordFilter = {
    run: folder.run,
    ...(options.step === null ? {} : { step: await stepDocument(folder, run, options.step) }),
    ...(options.group === null ? {} : { task: await groupIds(folder, run, options.group) }),
  };
  const page = options.worst === null ? { descending: options.step === null } : { order: "score" as const };
  const records: RecordDocument[] = [];
  for await (const record of everyDocument(run.store.records, filter, { ...page, limit: Math.min(limit, 500) })) {
    records.push(record);
    if (records.length === limit) break;
  }
  return records;
}

async function groupIds(folder: RunFolder, { store }: OpenRun, group: string): Promise<string[]> {
  const byId = (await store.tasks.get([group])).get(group);
  if (byId !== undefined) return [byId.id];
  const named = await allDocuments(store.tasks, { run: folder.run, name: group });
  if (named.length > 0) return named.map((task) => task.id);
  throw new RollscopeError("COMMAND_INVALID", `The run ${folder.run} sampled no task ${group}.`, {
    next: "Copy the id from the column `task` of `rollscope inspect RUN`.",
    at: { run: folder.run, task: group },
  });
}

async function listRecords(folder: RunFolder, run: OpenRun, options: InspectOptions, output: Output): Promise<void> {
  const records = await recordsOf(folder, run, options);
  const tasks = await run.store.tasks.get([...new Set(records.map((record) => record.task))]);
  output.document({
    run: folder.run,
    records: records.map((record) => ({ ...record, taskName: tasks.get(record.task)?.name ?? null })),
  });
  if (output.json) return;
  if (records.length === 0) {
    output.lines(["No records match."]);
    return;
  }
  const rows = records.map((record) => [
    record.id,
    visible(tasks.get(record.task)?.name ?? record.task),
    record.split,
    record.status,
    record.score === null ? "" : typeof record.score === "number" ? formatNumber(record.score) : record.score,
    String(record.stats.outputTokens),
    record.lastTrainedStep === null ? "" : String(record.lastTrainedStep),
    record.error === null ? "" : visible(record.error.code),
  ]);
  const right = { align: "right" as const };
  output.lines([
    ...renderTable(
      [
        { title: "record" },
        { title: "task" },
        { title: "split" },
        { title: "status" },
        { title: "score", ...right },
        { title: "tokens", ...right },
        { title: "step", ...right },
        { title: "error" },
      ],
      rows,
      output.width,
    ),
    "",
    `Add the id of a record, such as ${records[0]?.id}, to see its trajectory token by token.`,
  ]);
}

async function load(folder: RunFolder, { store, blobs }: OpenRun, record: string): Promise<LoadedTrajectory> {
  try {
    return await loadTrajectory(store, blobs, record);
  } catch (error) {
    if (!(error instanceof RollscopeError) || error.code !== "STORE_NOT_FOUND") throw error;
    throw new RollscopeError("RECORD_NOT_FOUND", `The run ${folder.run} has no record ${record}.`, {
      next: `\`rollscope inspect ${folder.name}\` lists its records.`,
      cause: error,
      at: { run: folder.run, record },
    });
  }
}

async function showRecord(
  folder: RunFolder,
  run: OpenRun,
  id: string,
  options: InspectOptions,
  output: Output,
): Promise<void> {
  const trajectory = await load(folder, run, id);
  const text = modelTextOf(folder);
  if (text === null) output.note("The model's files are gone, so tokens are shown by id.");
  const pieces = (call: LoadedCall): string[] => {
    if (text === null) return Array.from(call.output, (token) => `<${token}>`);
    const stream = text.tokenizer.stream();
    const parts = Array.from(call.output, (token) => stream.push(token));
    // What a cut-off call left unfinished belongs to its last token.
    if (parts.length > 0) parts[parts.length - 1] += stream.flush();
    return parts;
  };
  const whole = trajectory.calls.map((call) => ({ call, rows: tokenRows(call, pieces(call), options.step) }));
  const totals = tokenTotals(whole.flatMap(({ rows }) => rows));
  const calls = whole.map(
    ({ call, rows }): ShownCall => ({
      call,
      rows: options.worst === null ? rows : leastLikely(rows, options.worst),
      step: trainingOf(call, options.step).at(-1)?.step.step ?? null,
    }),
  );
  output.document({
    run: folder.run,
    record: trajectory.record,
    task: trajectory.task,
    calls: calls.map(({ call, rows, step }) => ({ ...withoutColumns(call), step, tokens: rows })),
    toolEvents: trajectory.toolEvents,
    totals,
  });
  if (!output.json) output.lines(renderTrajectory(trajectory, calls, totals, output.width, output.paint));
}

function leastLikely(rows: readonly TokenRow[], count: number): TokenRow[] {
  const rank = (row: TokenRow) => (Number.isNaN(row.rollout) ? Number.POSITIVE_INFINITY : row.rollout);
  return [...rows].sort((a, b) => rank(a) - rank(b) || a.index - b.index).slice(0, count);
}

/** The call without its packed columns: their numbers stand with the tokens. */
function withoutColumns({ document }: LoadedCall) {
  const { promptDelta: _p, output: _o, logprobs: _l, sampledLogprobs: _s, routing: _r, ...rest } = document;
  return rest;
}
