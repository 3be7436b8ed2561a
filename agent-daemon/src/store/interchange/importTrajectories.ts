// Writes trajectories of a file into a record store, so that they are inspected, queried and exported like those of a run. Every
// sampled turn becomes a call; what stands before it, its request. What the file does not say is left empty.
import type { ImportedTrajectory } from "../../../../protocol/importedTrajectory.ts";
import type { TaskDocument } from "../../../../protocol/record.ts";
import type { BlobStore, RecordStore } from "../interface.ts";
import type { TrajectoryFile } from "./openTrajectoryFile.ts";
import { finite, RecordWriter, splitOf } from "./recordWriter.ts";

export interface ImportOptions {
  /** Id of the run that the records become part of. */
  readonly run: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly signal?: AbortSignal;
  /** Called after each trajectory. */
  readonly onProgress?: (done: number, total: number) => void;
  /** Ids of records that are taken; those that are written are added. Share it over the files of one import. */
  readonly taken?: Set<string>;
}

export interface ImportResult {
  readonly records: number;
  readonly calls: number;
  readonly toolEvents: number;
}

const turnsAtOnce = 128;
/** Milliseconds between two records; a number holds it beside the years since 1970. */
const smallestTime = 1 / 64;

/**
 * Waits for the file's index, then writes all its trajectories. What a crash leaves is a part of them: whoever wants all or
 * nothing imports into a store of its own.
 *
 * @throws what the file and the stores throw; IMPORT_CANCELLED when the signal is aborted
 */
export async function importTrajectories(
  store: RecordStore,
  blobs: BlobStore,
  file: TrajectoryFile,
  options: ImportOptions,
): Promise<ImportResult> {
  await file.indexed;
  const { signal, taken = new Set<string>() } = options;
  const summaries = file.trajectories();
  const groups = new Map<string, number[]>();
  const groupOf = (index: number) => {
    const summary = summaries[index];
    return summary?.group ?? summary?.task ?? summary?.record ?? "";
  };
  for (const index of summaries.keys()) {
    const members = groups.get(groupOf(index)) ?? [];
    members.push(index);
    groups.set(groupOf(index), members);
  }
  const tasks = new Map<string, string>();
  const result = { records: 0, calls: 0, toolEvents: 0 };
  let created = Number.NEGATIVE_INFINITY;
  for (const index of summaries.keys()) {
    signal?.throwIfAborted();
    const about = await file.trajectory(index);
    // Lists show records as they were created: in the order of the file.
    created = Math.max(options.now(), created + smallestTime);
    const group = groupOf(index);
    const members = groups.get(group) ?? [index];
    let task = tasks.get(group);
    if (task === undefined) {
      task = unique(`t-${group}`, taken);
      tasks.set(group, task);
      const scores = members.map((member) => finite(summaries[member]?.score ?? null));
      await store.tasks.insert([
        taskDocument(task, about, { group, size: members.length, scores, number: tasks.size - 1, created }, options),
      ]);
    }
    const id = unique(about.id, taken);
    const writer = new RecordWriter(store, blobs, about, id, options.run, created);
    for (let first = 0; first < about.turnCount; first += turnsAtOnce) {
      signal?.throwIfAborted();
      await writer.add(await file.turns(index, first, first + turnsAtOnce));
    }
    await writer.finish({ task, sample: members.indexOf(index), file: file.path });
    result.records++;
    result.calls += writer.callCount;
    result.toolEvents += writer.eventCount;
    options.onProgress?.(index + 1, summaries.length);
  }
  return result;
}

function unique(wanted: string, taken: Set<string>): string {
  let id = wanted;
  for (let n = 2; taken.has(id); n++) id = `${wanted}~${n}`;
  taken.add(id);
  return id;
}

function taskDocument(
  id: string,
  about: ImportedTrajectory,
  group: {
    readonly group: string;
    readonly size: number;
    readonly scores: (number | null)[];
    readonly number: number;
    readonly created: number;
  },
  { run }: ImportOptions,
): TaskDocument {
  return {
    id,
    run,
    name: about.task ?? group.group,
    split: splitOf(about.split),
    epoch: 0,
    index: group.number,
    payload: {},
    groupSize: group.size,
    status: "completed",
    scores: group.scores,
    created: group.created,
  };
}
