// A record of a run as an open trajectory: its calls are indexed page by page, and each request reads only the calls it needs. A
// record that is still being sampled grows when it is looked at again. Never writes.

import { setTimeout } from "node:timers/promises";
import type { CallDocument } from "../../../../protocol/call.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { withoutBigints } from "../../../../protocol/json.ts";
import type { RecipeConfig } from "../../../../protocol/recipe.ts";
import type { RecordDocument, TaskDocument, ToolEventDocument } from "../../../../protocol/record.ts";
import type { RecordDataColumnName, RecordDataDocument } from "../../../../protocol/recordData.ts";
import {
  type TokenColumnName,
  type TrajectoryOutline,
  type TrajectoryRow,
  type TurnView,
  tokenColumnNames,
} from "../../../../protocol/trajectoryView.ts";
import type { ModelText } from "../../engines/tokenizer/load.ts";
import { decodeColumn, type TypedArray } from "../../store/columns.ts";
import { findInTurn, textFinder } from "../../store/findText.ts";
import { allDocuments } from "../../store/pages.ts";
import { gradientsOf, loadStepRows } from "../stepNumbers.ts";
import {
  type BulkAnswer,
  type Extreme,
  type ExtremeKind,
  extremeOf,
  type OpenTrajectory,
  type SearchResult,
  type TokenRequest,
} from "./openTrajectory.ts";
import { type CallEntry, RecordIndex } from "./recordIndex.ts";
import { type RunStores, recordRow } from "./recordRows.ts";
import { type TrainedRow, tokenArrays, tokenTexts } from "./recordTokens.ts";
import { messageParts, searchedTexts, turnViews } from "./recordTurns.ts";

export interface RecordSource extends RunStores {
  /** null where the run's configuration cannot be read. */
  readonly config: RecipeConfig | null;
  /** null where the model's files are gone. */
  readonly text: () => ModelText | null;
}

/** Calls read at once: before the record is shown, and while others wait for their turns. */
const firstCalls = 200;
const laterCalls = 40;
/** While a record is indexed, views hear of it at most so often. */
const tellMilliseconds = 200;
/** Calls that are kept for requests about the same place. */
const keptCalls = 64;

const ended: ReadonlySet<RecordDocument["status"]> = new Set(["scored", "ready", "abandoned", "failed", "cancelled"]);

/**
 * Indexes the record's first calls and goes on in the background.
 *
 * @param onChange called when more turns can be read
 * @throws STORE_NOT_FOUND
 */
export async function openRecordTrajectory(
  source: RecordSource,
  record: string,
  onChange: () => void,
): Promise<OpenTrajectory> {
  const trajectory = new RecordTrajectory(source, record, onChange);
  await trajectory.open();
  return trajectory;
}

class RecordTrajectory implements OpenTrajectory {
  private readonly source: RecordSource;
  private readonly id: string;
  private readonly onChange: () => void;
  private readonly index = new RecordIndex();
  private readonly kept = new Map<string, CallDocument>();
  private record!: RecordDocument;
  private task: TaskDocument | null = null;
  private toolEvents: readonly ToolEventDocument[] = [];
  private rows: readonly (Omit<RecordDataDocument, "columns"> & {
    readonly number: number;
    readonly attempt: number;
  })[] = [];
  private columns: readonly string[] = [];
  private complete = false;
  private reading: Promise<void> = Promise.resolve();
  private closed = false;
  private gradient: { readonly step: string; readonly rows: ReadonlyMap<string, Float64Array> } | null = null;

  constructor(source: RecordSource, id: string, onChange: () => void) {
    this.source = source;
    this.id = id;
    this.onChange = onChange;
  }

  async open(): Promise<void> {
    const { store } = this.source;
    const record = (await store.records.get([this.id])).get(this.id);
    if (record === undefined) {
      throw new RollscopeError("STORE_NOT_FOUND", `There is no record ${this.id} in ${this.source.folder}.`, {
        next: "Open the list of the run's trajectories and choose one there.",
        at: { record: this.id },
      });
    }
    this.record = record;
    this.task = (await store.tasks.get([record.task])).get(record.task) ?? null;
    this.toolEvents = (await allDocuments(store.toolEvents, { record: this.id })).sort((a, b) => a.index - b.index);
    await this.readRows();
    const next = await this.readCalls(undefined, firstCalls);
    if (next === null) this.complete = ended.has(record.status);
    else {
      this.reading = this.readOn(next);
      // Whoever waits for it hears of a failure; nobody has to.
      this.reading.catch(() => {});
    }
  }

  /** One page of calls into the index; gives where the next page begins. */
  private async readCalls(after: string | undefined, limit: number): Promise<string | null> {
    const page = await this.source.store.calls.query(
      { record: this.id },
      { limit, ...(after === undefined ? {} : { after }) },
    );
    for (const call of page.items) this.index.add(call);
    return page.next;
  }

  /** The store answers at once: without pauses nobody else would be served until the last call was read. */
  private async readOn(first: string): Promise<void> {
    let next: string | null = first;
    let told = performance.now();
    while (next !== null && !this.closed) {
      const begun = performance.now();
      next = await this.readCalls(next, laterCalls);
      if (performance.now() - told >= tellMilliseconds) {
        told = performance.now();
        this.onChange();
      }
      await setTimeout(performance.now() - begun);
    }
    if (this.closed) return;
    this.complete = ended.has(this.record.status);
    this.onChange();
  }

  private async readRows(): Promise<void> {
    const { store } = this.source;
    const documents = await allDocuments(store.recordData, { record: this.id });
    const steps = await store.steps.get([...new Set(documents.map(({ step }) => step))]);
    this.rows = documents.flatMap(({ columns: _columns, ...row }) => {
      const step = steps.get(row.step);
      return step === undefined ? [] : [{ ...row, number: step.step, attempt: step.attempt }];
    });
    const names = new Set(documents.flatMap(({ columns }) => Object.keys(columns)));
    this.columns = tokenColumnNames.filter(
      (name) =>
        ["id", "logprob", "version"].includes(name) ||
        (documents.length > 0 && (names.has(name === "value" ? "oldValue" : name) || derived.has(name))),
    );
  }

  outline(): TrajectoryOutline {
    const { record, task, index } = this;
    return {
      row: recordRow(this.source.folder, record, task, null),
      turnCount: index.turnCount,
      complete: this.complete,
      progress: null,
      branches: index.branches(),
      tokenCount: index.tokenCount,
      columns: [...this.columns],
      trained: this.rows.map(({ number, attempt, pass, id }) => ({ step: number, attempt, pass, row: id })),
      reward: record.reward,
      payload: task === null ? null : withoutBigints(task.payload),
      fields: withoutBigints(record.fields),
      metadata: { status: record.status, resample: record.resample, trainedCount: record.trainedCount },
      tools: [],
    };
  }

  private async calls(entries: readonly CallEntry[]): Promise<[CallEntry, CallDocument][]> {
    const missing = entries.filter(({ id }) => !this.kept.has(id)).map(({ id }) => id);
    const read = missing.length === 0 ? new Map<string, CallDocument>() : await this.source.store.calls.get(missing);
    const found = entries.flatMap((entry): [CallEntry, CallDocument][] => {
      const call = read.get(entry.id) ?? this.kept.get(entry.id);
      return call === undefined ? [] : [[entry, call]];
    });
    for (const [entry, call] of found.slice(-keptCalls)) {
      this.kept.delete(entry.id);
      this.kept.set(entry.id, call);
    }
    for (const id of this.kept.keys()) {
      if (this.kept.size <= keptCalls) break;
      this.kept.delete(id);
    }
    return found;
  }

  indexed(): Promise<void> {
    return this.reading;
  }

  async turns(from: number, to: number): Promise<TurnView[]> {
    const calls = await this.calls(this.index.withTurns(from, to));
    return calls
      .flatMap(([entry, call]) => turnViews(entry, call, this.toolEvents))
      .filter(({ turn }) => turn >= from && turn < to);
  }

  private async messageOf(turn: number) {
    const entry = this.index.ofTurn(turn);
    const [found] = await this.calls([entry]);
    if (found === undefined) throw gone(entry.id);
    const [, call] = found;
    const message = call.request.messages[turn - entry.firstTurn] ?? call.message;
    return { entry, call, parts: message === null ? [] : messageParts(message) };
  }

  async part(turn: number, part: number, from: number, to: number): Promise<{ text: string; characters: number }> {
    const found = (await this.messageOf(turn)).parts[part];
    const text = found === undefined || found.kind === "image" ? "" : found.text;
    return { text: text.slice(from, to), characters: text.length };
  }

  async raw(turn: number): Promise<string> {
    const { entry, call } = await this.messageOf(turn);
    const text = this.source.text();
    if (text === null) {
      throw new RollscopeError(
        "ENGINE_MODEL_NOT_FOUND",
        "The model's tokenizer is gone, so tokens cannot be shown as text.",
        {
          next: "Fetch the model again with `rollscope models fetch`.",
        },
      );
    }
    const { blobs } = this.source;
    const delta = await decodeColumn(blobs, call.promptDelta, "i32");
    if (turn < entry.firstTurn + entry.messages) return text.tokenizer.decode(delta);
    const prompt: number[] = [];
    for (const [, part] of await this.calls(this.index.path(entry.id))) {
      prompt.length = Math.min(prompt.length, part.keptTokens);
      prompt.push(...(await decodeColumn(blobs, part.promptDelta, "i32")));
      prompt.push(...(await decodeColumn(blobs, part.output, "i32")));
    }
    return text.tokenizer.decode(prompt);
  }

  async tokens({ from, to, columns, row }: TokenRequest): Promise<BulkAnswer> {
    const end = Math.min(to, this.index.tokenCount);
    const calls = await this.calls(this.index.withTokens(from, end));
    const trained = await this.trainedRow(row, columns.includes("gradient"));
    const source = { blobs: this.source.blobs, row: trained, objective: this.source.config?.objective ?? null };
    const arrays = await tokenArrays(source, calls, { from, to: end }, columns);
    const model = this.source.text();
    const ends: number[] = [];
    let text = "";
    for (const [entry, call] of calls) {
      const output = await decodeColumn(this.source.blobs, call.output, "i32");
      const first = Math.max(0, from - entry.firstToken);
      for (const piece of tokenTexts(model, output, first, Math.min(output.length, end - entry.firstToken))) {
        text += piece;
        ends.push(text.length);
      }
    }
    return { arrays, extra: { text, ends, from } };
  }

  async extreme(column: TokenColumnName, row: string | null, most: ExtremeKind): Promise<Extreme> {
    const range = { from: 0, to: this.index.tokenCount };
    const trained = await this.trainedRow(row, column === "gradient");
    const source = { blobs: this.source.blobs, row: trained, objective: this.source.config?.objective ?? null };
    const values = new Float64Array(range.to).fill(Number.NaN);
    for (const entry of this.index.withTokens(0, range.to)) {
      const part = { from: entry.firstToken, to: entry.firstToken + entry.tokens };
      values.set((await tokenArrays(source, await this.calls([entry]), part, [column])).get(column)!, part.from);
    }
    return extremeOf(values, most);
  }

  private async trainedRow(id: string | null, wantGradient: boolean): Promise<TrainedRow | null> {
    const wanted = id === null ? this.rows.at(-1) : this.rows.find((row) => row.id === id);
    if (wanted === undefined) return null;
    const document = (await this.source.store.recordData.get([wanted.id])).get(wanted.id);
    if (document === undefined) return null;
    const columns: { [Name in RecordDataColumnName]?: TypedArray } = {};
    for (const [name, column] of Object.entries(document.columns))
      if (column !== undefined) columns[name as RecordDataColumnName] = await decodeColumn(this.source.blobs, column);
    return { document, columns, gradient: wantGradient ? await this.gradientOf(document) : null };
  }

  /** Of the step's whole batch, because a token's share of the loss depends on all of it; kept for the step asked last. */
  private async gradientOf(document: RecordDataDocument): Promise<Float64Array | null> {
    const { store, blobs, config } = this.source;
    if (config === null) return null;
    if (this.gradient?.step !== document.step) {
      const step = (await store.steps.get([document.step])).get(document.step);
      if (step === undefined) return null;
      const { rows } = await loadStepRows(store, blobs, step);
      const gradients = gradientsOf(config.objective, rows);
      this.gradient = {
        step: document.step,
        rows: new Map(rows.map((row, r) => [row.document.id, gradients?.[r] ?? new Float64Array(0).fill(0)])),
      };
      if (gradients === null) this.gradient = { step: document.step, rows: new Map() };
    }
    return this.gradient.rows.get(document.id) ?? null;
  }

  async search(text: string, fromTurn: number, limit: number): Promise<SearchResult> {
    const hits: SearchResult["hits"] = [];
    let cut = false;
    const find = textFinder(text);
    for (const entry of this.index.withTurns(fromTurn, this.index.turnCount)) {
      const [found] = await this.calls([entry]);
      if (found === undefined) continue;
      const [, call] = found;
      const messages = call.message === null ? call.request.messages : [...call.request.messages, call.message];
      for (const [index, message] of messages.entries()) {
        const turn = entry.firstTurn + index;
        if (turn < fromTurn) continue;
        if (hits.length >= limit) return { hits, next: turn, cut };
        const within = findInTurn(find, turn, searchedTexts(message));
        hits.push(...within.hits);
        cut ||= within.cut;
      }
    }
    return { hits, next: null, cut };
  }

  async siblings(): Promise<TrajectoryRow[]> {
    const { store, folder } = this.source;
    const records = await allDocuments(store.records, { run: this.record.run, task: this.record.task });
    return records.filter(({ id }) => id !== this.id).map((record) => recordRow(folder, record, this.task, null));
  }

  async image(handle: string): Promise<BulkAnswer> {
    const [turn, number] = handle.split("/").map(Number);
    const part = (await this.messageOf(turn ?? -1)).parts[number ?? -1];
    if (part?.kind !== "image" || !("hash" in part.image)) {
      const why = part?.kind === "image" ? "was not in the file that the record was imported from" : "is not there";
      throw new RollscopeError("STORE_NOT_FOUND", `The image ${handle} of ${this.id} ${why}.`, {
        next: part?.kind === "image" ? "Open it where it lies." : "Open the trajectory again.",
        at: { record: this.id },
      });
    }
    const bytes = await this.source.blobs.get(part.image.hash);
    return { arrays: new Map([["bytes", bytes]]), extra: { mediaType: part.image.mediaType ?? "image/*" } };
  }

  dispose(): Promise<void> {
    this.closed = true;
    this.kept.clear();
    return Promise.resolve();
  }
}

/** Columns that follow from those that a training row stores. */
const derived: ReadonlySet<string> = new Set(["mask", "ratio", "gradient", "mismatch"]);

function gone(call: string): RollscopeError {
  return new RollscopeError("STORE_NOT_FOUND", `Call ${call} is not in the store any more.`, {
    next: "Open the trajectory again.",
  });
}
