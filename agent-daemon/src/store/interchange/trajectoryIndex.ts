// The list of a file's trajectories as it grows, and the way back from an entry to its turns. Small records are opened anew when
// they are asked for, so that the index of a large file stays small; the last few stay open.

import type { RollscopeError } from "../../../../protocol/errors.ts";
import type {
  FileProblem,
  ImportedFormat,
  SourceRange,
  TrajectorySummary,
} from "../../../../protocol/importedTrajectory.ts";
import { problemOf } from "./importError.ts";
import type { RowTrajectory } from "./turns.ts";

/** One record of the file: how to open it, or what is open for good. */
export interface RecordHandle {
  readonly format: ImportedFormat;
  readonly source: SourceRange;
  readonly complete: boolean;
  open(): Promise<readonly RowTrajectory[]>;
}

interface Entry {
  summary: TrajectorySummary;
  readonly record: RecordHandle;
  /** Which of the record's trajectories. */
  readonly which: number;
}

/** Records that stay open, by last use. */
const openRecords = 4;
/** Problems that are listed; more are counted only. */
const mostProblems = 1000;

export class TrajectoryIndex {
  private readonly entries: Entry[] = [];
  private readonly taken = new Map<string, number>();
  private readonly opened = new Map<RecordHandle, Promise<readonly RowTrajectory[]>>();
  readonly problems: FileProblem[] = [];
  /** All there were, listed or not. */
  problemCount = 0;

  get summaries(): TrajectorySummary[] {
    return this.entries.map((entry) => entry.summary);
  }

  get count(): number {
    return this.entries.length;
  }

  summary(index: number): TrajectorySummary | undefined {
    return this.entries[index]?.summary;
  }

  problem(error: RollscopeError): void {
    this.problemCount++;
    if (this.problems.length < mostProblems) this.problems.push(problemOf(error));
  }

  /** Returns the place of the first. */
  add(record: RecordHandle, trajectories: readonly RowTrajectory[]): number {
    const first = this.entries.length;
    trajectories.forEach((trajectory, which) => {
      this.entries.push(this.entryOf(record, trajectory, which, null));
    });
    return first;
  }

  /** What is known by now of a record whose trajectories begin at `first`; it may have become more. */
  replace(first: number, length: number, record: RecordHandle, trajectories: readonly RowTrajectory[]): void {
    const before = this.entries.slice(first, first + length);
    for (const each of before) this.opened.delete(each.record);
    const entries = trajectories.map((trajectory, which) =>
      this.entryOf(record, trajectory, which, before[which]?.summary ?? null),
    );
    this.entries.splice(first, length, ...entries);
  }

  /** A record that is being read has more turns by now. */
  grow(first: number, trajectories: readonly RowTrajectory[]): void {
    trajectories.forEach((trajectory, which) => {
      const entry = this.entries[first + which];
      if (entry !== undefined) entry.summary = { ...entry.summary, turnCount: trajectory.turns.count };
    });
  }

  async trajectory(index: number): Promise<RowTrajectory | undefined> {
    const entry = this.entries[index];
    if (entry === undefined) return undefined;
    let open = this.opened.get(entry.record);
    if (open === undefined) {
      open = entry.record.open();
      // A failure is not kept: what was wrong may be over.
      open.catch(() => this.opened.delete(entry.record));
    } else this.opened.delete(entry.record);
    this.opened.set(entry.record, open);
    for (const oldest of this.opened.keys()) {
      if (this.opened.size <= openRecords) break;
      this.opened.delete(oldest);
    }
    return (await open)[entry.which];
  }

  dispose(): void {
    this.opened.clear();
  }

  private entryOf(
    record: RecordHandle,
    trajectory: RowTrajectory,
    which: number,
    before: TrajectorySummary | null,
  ): Entry {
    const {
      reward: _reward,
      tools: _tools,
      columns: _columns,
      metadata: _metadata,
      started: _started,
      ended: _ended,
      ...known
    } = trajectory.header;
    const kept = before?.id === known.id || before?.id.startsWith(`${known.id}~`) === true;
    const id = kept ? (before as TrajectorySummary).id : this.unique(known.id);
    const numbered = id.slice(known.id.length);
    const recordName = known.branch === null ? id : known.id.replace(/\/(?:chosen|rejected|\d+)$/, "") + numbered;
    const summary: TrajectorySummary = {
      ...known,
      id,
      record: recordName,
      format: record.format,
      turnCount: trajectory.turns.count,
      complete: record.complete,
      source: record.source,
    };
    return { summary, record, which };
  }

  /** Two records of one name stay two. */
  private unique(id: string): string {
    const earlier = this.taken.get(id) ?? 0;
    this.taken.set(id, earlier + 1);
    if (earlier === 0) return id;
    return this.unique(`${id}~${earlier + 1}`);
  }
}
