// A trajectory of another tool's file in the shape that views read. What the file lacks is null; nothing is computed but places.
import type { JsonValue } from "../../../../protocol/agent.ts";
import type { BulkArray } from "../../../../protocol/bulkFrame.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { ImportedTrajectory, ImportedTurn, TrajectorySummary } from "../../../../protocol/importedTrajectory.ts";
import { withoutBigints } from "../../../../protocol/json.ts";
import type {
  TokenColumnName,
  TrajectoryOutline,
  TrajectoryRow,
  TurnPart,
  TurnView,
} from "../../../../protocol/trajectoryView.ts";
import type { TrajectoryFile } from "../../store/interchange/openTrajectoryFile.ts";
import {
  type BulkAnswer,
  type Extreme,
  type ExtremeKind,
  extremeOf,
  type OpenTrajectory,
  type SearchResult,
  type TokenRequest,
} from "./openTrajectory.ts";
import { shownText } from "./recordTurns.ts";

/** Turns read at once when all of them have to be looked at. */
const pageTurns = 256;

export function fileRow(path: string, index: number, summary: TrajectorySummary): TrajectoryRow {
  return {
    source: { kind: "file", path, index },
    id: summary.id,
    task: summary.task,
    taskName: summary.task,
    group: summary.group,
    sample: null,
    attempt: null,
    split: summary.split,
    status: summary.error === null ? (summary.exitStatus ?? "completed") : "failed",
    score: summary.score,
    turns: summary.turnCount,
    promptTokens: null,
    outputTokens: null,
    truncated: summary.truncated ?? false,
    toolErrors: 0,
    driftedCalls: summary.branch?.drifted === true ? 1 : 0,
    staleness: null,
    mismatch: null,
    steps: summary.step === null ? [] : [summary.step],
    error: summary.error === null ? null : { code: "IMPORTED", message: summary.error, call: null },
    labels: [...summary.labels, ...(summary.model === null ? [] : [summary.model])],
  };
}

/**
 * Of a file that is still being indexed: as far as it is read, and again when it is read to its end.
 *
 * @param onChange called when that is done
 */
export async function openFileTrajectory(
  file: TrajectoryFile,
  index: number,
  onChange: () => void,
): Promise<OpenTrajectory> {
  const trajectory = new FileTrajectory(file, index, await readFacts(file, index));
  if (!file.complete) trajectory.readOn(onChange);
  return trajectory;
}

interface Facts {
  readonly about: ImportedTrajectory;
  /** Empty where the file has no tokens. */
  readonly places: readonly number[];
}

async function readFacts(file: TrajectoryFile, index: number): Promise<Facts> {
  const about = await file.trajectory(index);
  return { about, places: about.columns.length === 0 ? [] : await tokenPlaces(file, index) };
}

/** Sampled tokens before each turn, and of all of them at the end. */
async function tokenPlaces(file: TrajectoryFile, index: number): Promise<number[]> {
  const places = [0];
  for (let from = 0; ; from += pageTurns) {
    const turns = await file.turns(index, from, from + pageTurns);
    for (const { tokens } of turns) places.push(places.at(-1)! + sampledOf(tokens));
    if (turns.length < pageTurns) return places;
  }
}

const sampledOf = (tokens: ImportedTurn["tokens"]) => tokens?.sampled.reduce((sum, flag) => sum + flag, 0) ?? 0;

class FileTrajectory implements OpenTrajectory {
  private readonly file: TrajectoryFile;
  private readonly index: number;
  private about: ImportedTrajectory;
  private places: readonly number[];
  private reading: Promise<void> = Promise.resolve();
  private closed = false;

  constructor(file: TrajectoryFile, index: number, { about, places }: Facts) {
    this.file = file;
    this.index = index;
    this.about = about;
    this.places = places;
  }

  readOn(onChange: () => void): void {
    const again = async () => {
      // What made reading on impossible is told with the file; what was found is there.
      await this.file.indexed.catch(() => {});
      if (this.closed) return;
      ({ about: this.about, places: this.places } = await readFacts(this.file, this.index));
      onChange();
    };
    this.reading = again();
    // Whoever waits for it hears of a failure; nobody has to.
    this.reading.catch(() => {});
  }

  private get summary(): TrajectorySummary {
    return this.file.trajectories()[this.index] ?? this.about;
  }

  outline(): TrajectoryOutline {
    const { about, file, summary } = this;
    const { done, total } = file.progress;
    return {
      row: fileRow(file.path, this.index, summary),
      turnCount: summary.turnCount,
      complete: summary.complete,
      progress: file.complete ? null : { done, total },
      inFile: file.trajectories().length,
      branches: [{ leaf: summary.id, turns: [[0, summary.turnCount]], drift: null }],
      tokenCount: this.places.length === 0 ? null : this.places.at(-1)!,
      columns: [...about.columns],
      trained: [],
      reward: about.reward,
      payload: null,
      fields: {},
      metadata: withoutBigints({ format: about.format, ...about.metadata }),
      tools: about.tools.map((tool) => ({ ...tool, parameters: withoutBigints(tool.parameters as JsonValue) })),
    };
  }

  indexed(): Promise<void> {
    return this.reading;
  }

  async turns(from: number, to: number): Promise<TurnView[]> {
    const turns = await this.file.turns(this.index, from, to);
    return turns.map((turn, offset) => this.view(from + offset, turn));
  }

  private view(turn: number, given: ImportedTurn): TurnView {
    const first = this.places[turn];
    const length = sampledOf(given.tokens);
    return {
      turn,
      role: given.role,
      parts: partsOf(turn, given),
      toolCalls: given.toolCalls.map(({ id, name, arguments: text }) => ({ id: id ?? "", name, arguments: text })),
      result: given.result === null ? null : { ...given.result, milliseconds: null },
      call: null,
      policyVersions: null,
      tokens: first === undefined || length === 0 ? null : { first, length },
      finishReason: given.finishReason,
      temperature: null,
      promptTokens: null,
      cachedTokens: null,
      started: given.started,
      ended: given.ended,
      drift: null,
      error: given.problem === null ? null : { code: "IMPORT_ROW_INVALID", message: given.problem, call: null },
      demonstration: given.demonstration,
      trainable: given.trainable,
    };
  }

  private async turn(turn: number): Promise<ImportedTurn> {
    const [found] = await this.file.turns(this.index, turn, turn + 1);
    if (found !== undefined) return found;
    throw new RollscopeError("TRAJECTORY_TURN_UNKNOWN", `There is no turn ${turn} in ${this.about.id}.`, {
      next: "Open the file again: it may have changed.",
    });
  }

  async part(turn: number, part: number, from: number, to: number): Promise<{ text: string; characters: number }> {
    const found = (await this.turn(turn)).parts[part];
    const text = found === undefined || found.kind === "image" ? "" : found.text;
    return { text: text.slice(from, to), characters: text.length };
  }

  /** The turn as it was read, since the file's own bytes can be of any form. */
  async raw(turn: number): Promise<string> {
    return JSON.stringify(await this.turn(turn), null, 2);
  }

  async tokens({ from, to, columns }: TokenRequest): Promise<BulkAnswer> {
    const end = Math.min(to, this.places.at(-1) ?? 0);
    const length = Math.max(0, end - from);
    const arrays = new Map<string, BulkArray>();
    for (const name of columns) {
      if (name === "id") arrays.set(name, new Int32Array(length).fill(-1));
      else if (name === "mask") arrays.set(name, new Uint8Array(length));
      else arrays.set(name, new Float32Array(length).fill(Number.NaN));
    }
    let text = "";
    const ends: number[] = [];
    for (const { at, id, logprob, advantage } of await this.sampled(from, end)) {
      arrays.get("id")?.fill(id, at - from, at - from + 1);
      arrays.get("mask")?.fill(1, at - from, at - from + 1);
      arrays.get("logprob")?.fill(logprob, at - from, at - from + 1);
      arrays.get("advantage")?.fill(advantage, at - from, at - from + 1);
      text += `⟨${id}⟩`;
      ends.push(text.length);
    }
    return { arrays, extra: { text, ends, from } };
  }

  private async sampled(from: number, to: number) {
    const found: { at: number; id: number; logprob: number; advantage: number }[] = [];
    for (let turn = 0; turn + 1 < this.places.length; turn++) {
      const first = this.places[turn]!;
      if (this.places[turn + 1]! <= from || first >= to) continue;
      const { tokens } = await this.turn(turn);
      if (tokens === null) continue;
      let at = first;
      for (const [i, id] of tokens.ids.entries()) {
        if (tokens.sampled[i] !== 1) continue;
        const logprob = tokens.logprobs?.[at - first] ?? Number.NaN;
        const advantage = tokens.advantages?.[at - first] ?? Number.NaN;
        if (at >= from && at < to) found.push({ at, id, logprob, advantage });
        at += 1;
      }
    }
    return found;
  }

  async extreme(column: TokenColumnName, _row: string | null, most: ExtremeKind): Promise<Extreme> {
    const { arrays } = await this.tokens({ from: 0, to: Number.MAX_SAFE_INTEGER, columns: [column], row: null });
    return extremeOf(arrays.get(column) ?? [], most);
  }

  async search(text: string, fromTurn: number, limit: number): Promise<SearchResult> {
    const { hits, next, cut } = await this.file.search(this.index, text, { from: fromTurn, limit });
    return { hits: [...hits], next, cut };
  }

  siblings(): Promise<TrajectoryRow[]> {
    const own = this.summary;
    const rows = this.file.trajectories().flatMap((other, index) => {
      const together = own.group === null ? other.record === own.record : other.group === own.group;
      return index !== this.index && together ? [fileRow(this.file.path, index, other)] : [];
    });
    return Promise.resolve(rows);
  }

  async image(handle: string): Promise<BulkAnswer> {
    const [turn, part] = handle.split("/").map(Number);
    const found = (await this.turn(turn ?? -1)).parts[part ?? -1];
    const data = found?.kind === "image" ? /^data:([^;,]*)(;base64)?,(.*)$/s.exec(found.reference) : null;
    if (data === null) {
      throw new RollscopeError(
        "STORE_NOT_FOUND",
        `The image ${handle} is not in ${this.file.path}; it only names it.`,
        {
          next: "Open the image where the file says it lies.",
        },
      );
    }
    const bytes = Buffer.from(data[3]!, data[2] === undefined ? "utf8" : "base64");
    return { arrays: new Map([["bytes", new Uint8Array(bytes)]]), extra: { mediaType: data[1] } };
  }

  dispose(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}

function partsOf(turn: number, { parts }: ImportedTurn): TurnPart[] {
  return parts.flatMap((part, index): TurnPart[] => {
    if (part.kind === "image") {
      const mediaType = part.mediaType ?? "image/*";
      return [{ kind: "image", handle: `${turn}/${index}`, mediaType, width: null, height: null }];
    }
    return shownText(part, index);
  });
}
