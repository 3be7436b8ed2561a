// Opens a file of trajectories, of whatever tool: the index is built in the background while the first turns can be read, and turns
// are read from the file by their byte ranges. A file is never in memory as a whole. It only reads.
import type { RollscopeError } from "../../../../protocol/errors.ts";
import type {
  FileProblem,
  ImportedFormat,
  ImportedTrajectory,
  ImportedTurn,
  TrajectorySummary,
} from "../../../../protocol/importedTrajectory.ts";
import { type ByteSource, openFileBytes } from "./byteSource.ts";
import { type DetectedFile, detectFormat } from "./detectFormat.ts";
import { codedImportError, importError } from "./importError.ts";
import { indexJson, textStart } from "./jsonIndexer.ts";
import type { JsonObject } from "./jsonText.ts";
import { indexClaudeCode, indexCompletions, indexEvalZip } from "./otherIndexers.ts";
import { type SearchOptions, type SearchPage, searchTurns } from "./searchTurns.ts";
import { TrajectoryIndex } from "./trajectoryIndex.ts";
import type { RowTrajectory } from "./turns.ts";
import { openZip, type ZipMembers } from "./zipMembers.ts";

export interface FileProgress {
  /** Bytes that were indexed, of all. */
  readonly done: number;
  readonly total: number;
  /** Trajectories found so far. */
  readonly trajectories: number;
}

export interface OpenTrajectoryFileOptions {
  /** Ends the indexing; what was found stays readable until close. */
  readonly signal?: AbortSignal;
  /** Called while the index is built, and once when it is done. */
  readonly onProgress?: (progress: FileProgress) => void;
}

export interface TrajectoryFile {
  readonly path: string;
  readonly format: ImportedFormat;
  /** In bytes. */
  readonly size: number;
  readonly progress: FileProgress;
  /** The index is done: nothing will be added. */
  readonly complete: boolean;
  /**
   * Resolves when the index is done. Rejects with IMPORT_CANCELLED, or with what made reading on impossible
   * (IMPORT_FILE_UNREADABLE, IMPORT_FILE_INVALID); what was found stays readable.
   */
  readonly indexed: Promise<void>;
  /** Records that could not be read, each with its place. At most a thousand are listed. */
  readonly problems: readonly FileProblem[];
  readonly problemCount: number;
  /** What the file says about itself: members of a zip, columns of a table, task and model of a log. */
  readonly facts: JsonObject;
  /** Those found so far, in the order of the file. The one being read has more turns each time. */
  trajectories(): TrajectorySummary[];
  /** Everything but the turns. One that was not found yet is waited for, here and below. @throws IMPORT_TRAJECTORY_UNKNOWN */
  trajectory(index: number): Promise<ImportedTrajectory>;
  /** Turns [from, to) of those that are there. @throws IMPORT_TRAJECTORY_UNKNOWN */
  turns(index: number, from: number, to: number): Promise<ImportedTurn[]>;
  /** Occurrences of a text, whatever its case, in parts and in arguments of tool calls. */
  search(index: number, text: string, options?: SearchOptions): Promise<SearchPage>;
  close(): Promise<void>;
}

/**
 * Returns as soon as the first turns can be read, or the whole file was read without any.
 *
 * @throws IMPORT_FILE_UNREADABLE, IMPORT_FORMAT_UNKNOWN, IMPORT_FILE_INVALID, IMPORT_CANCELLED
 */
export async function openTrajectoryFile(
  path: string,
  options: OpenTrajectoryFileOptions = {},
): Promise<TrajectoryFile> {
  const { signal, onProgress } = options;
  if (signal?.aborted) throw cancelled(path);
  const source = await openFileBytes(path);
  try {
    const detected = await detectFormat(source);
    const zip = detected.container === "zip" ? await openZip(path) : null;
    const file = new IndexedFile(source, detected, zip, onProgress ?? (() => {}), signal);
    const failure = file.indexed.then(
      () => null,
      (error: unknown) => error,
    );
    const first = await Promise.race([file.firstTurns, failure]);
    if (first !== null && file.trajectories().length === 0) {
      await file.close();
      throw first;
    }
    return file;
  } catch (error) {
    await source.close();
    throw codedImportError(error, { file: path });
  }
}

class IndexedFile implements TrajectoryFile {
  readonly path: string;
  readonly format: ImportedFormat;
  readonly size: number;
  readonly indexed: Promise<void>;
  /** Resolves with null when there is something to read. */
  readonly firstTurns: Promise<null>;
  facts: JsonObject = {};
  complete = false;
  private readonly index = new TrajectoryIndex();
  private readonly stop = new AbortController();
  private done = 0;
  private hasTurns: () => void = () => {};
  /** Nothing will be found any more. */
  private ended = false;
  /** Called once when more was found, or when nothing will be. */
  private readonly waiting = new Set<() => void>();

  constructor(
    private readonly source: ByteSource,
    detected: DetectedFile,
    private readonly zip: ZipMembers | null,
    private readonly onProgress: (progress: FileProgress) => void,
    signal: AbortSignal | undefined,
  ) {
    this.path = source.file;
    this.format = detected.format;
    this.size = source.size;
    this.firstTurns = new Promise((resolve) => {
      this.hasTurns = () => resolve(null);
    });
    const abort = () => this.stop.abort();
    signal?.addEventListener("abort", abort, { once: true });
    this.indexed = this.build(detected).finally(() => {
      signal?.removeEventListener("abort", abort);
      this.ended = true;
      this.wake();
    });
    // Whoever waits for it hears of a failure; nobody has to.
    this.indexed.catch(() => {});
  }

  get progress(): FileProgress {
    return { done: this.done, total: this.size, trajectories: this.index.count };
  }

  get problems(): readonly FileProblem[] {
    return this.index.problems;
  }

  get problemCount(): number {
    return this.index.problemCount;
  }

  trajectories(): TrajectorySummary[] {
    return this.index.summaries;
  }

  async trajectory(index: number): Promise<ImportedTrajectory> {
    const { header } = await this.opened(index);
    const { id: _id, ...about } = header;
    const summary = this.index.summary(index) as TrajectorySummary;
    return { ...about, ...summary };
  }

  async turns(index: number, from: number, to: number): Promise<ImportedTurn[]> {
    const { turns } = await this.opened(index);
    return await this.coded(() => turns.read(Math.max(0, from), Math.min(to, turns.count)));
  }

  async search(index: number, text: string, options: SearchOptions = {}): Promise<SearchPage> {
    const { turns } = await this.opened(index);
    return await this.coded(() => searchTurns(turns, text, options));
  }

  async close(): Promise<void> {
    this.stop.abort();
    await this.indexed.catch(() => {});
    this.index.dispose();
    await this.zip?.close();
    await this.source.close();
  }

  private async opened(index: number): Promise<RowTrajectory> {
    while (index >= this.index.count && !this.ended) await new Promise<void>((resolve) => this.waiting.add(resolve));
    const found = await this.coded(() => this.index.trajectory(index));
    if (found !== undefined) return found;
    const next = `Ask for one of the ${this.index.count} that were found.`;
    throw importError("IMPORT_TRAJECTORY_UNKNOWN", { file: this.path }, `there is no trajectory ${index}.`, next);
  }

  private async coded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw codedImportError(error, { file: this.path });
    }
  }

  private async build(detected: DetectedFile): Promise<void> {
    // Whoever opened the file first gets it back.
    await null;
    try {
      await this.read(detected);
      this.complete = true;
      this.advance(this.size);
      this.hasTurns();
    } catch (error) {
      if (this.stop.signal.aborted) throw cancelled(this.path);
      throw codedImportError(error, { file: this.path });
    }
  }

  private async read(detected: DetectedFile): Promise<void> {
    const { source, index, zip } = this;
    const { signal } = this.stop;
    const work = { source, index, signal, progress: (done: number) => this.advance(done) };
    if (zip !== null) {
      const members = { index, signal, progress: (part: number) => this.advance(part * this.size) };
      this.facts = await indexEvalZip(members, this.path, zip);
    } else if (detected.container === "parquet") this.facts = await indexCompletions(work);
    else if (detected.format === "claude-code") await indexClaudeCode(work, await textStart(source));
    else if (detected.container !== "zip") await indexJson(work, detected.container, detected.format);
  }

  private advance(done: number): void {
    this.done = done;
    if (this.index.count > 0) this.hasTurns();
    this.wake();
    this.onProgress(this.progress);
  }

  private wake(): void {
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const wake of waiting) wake();
  }
}

function cancelled(path: string): RollscopeError {
  return importError(
    "IMPORT_CANCELLED",
    { file: path },
    "reading the file was cancelled.",
    "Open it again to read it to its end.",
  );
}
