// One group: the records of one task, sampled side by side, each tried again while its retry budget lasts. The group is
// decided when all have ended, or at its deadline with what is graded by then. Writes tasks and records, nothing else.
import type { Task } from "../../../protocol/agent.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import { newRecord, type RecordDocument } from "../../../protocol/record.ts";
import type { RecordSet, RecordStore } from "../store/interface.ts";
import type { Limiter } from "./limiter.ts";
import { linkedAbort } from "./linkedAbort.ts";
import { recordId, streamKeyOf, type TaskPlace, taskDocumentId } from "./recordIds.ts";
import { type RolloutCollaborators, type RolloutOutcome, runRollout } from "./rollout.ts";
import type { RolloutLimits } from "./rolloutTimeouts.ts";
import type { SamplingSettings } from "./session.ts";

/** A task at its place in the data order. */
export interface ScheduledTask {
  readonly task: Task;
  /** Pass over the task file, from 0. */
  readonly epoch: number;
}

export interface GroupSettings {
  readonly groupSize: number;
  readonly retries: number;
  /** Milliseconds from the first rollout's begin; null = none. */
  readonly deadline: number | null;
  readonly sampling: SamplingSettings;
  readonly limits: RolloutLimits;
}

export interface GroupContext<Trajectories> extends RolloutCollaborators<Trajectories> {
  readonly run: string;
  readonly attempt: number;
  readonly store: Pick<RecordStore, "tasks" | "records">;
  readonly limiter: Limiter;
  /** Ends all rollouts; its reason is a RollscopeError. */
  readonly cancel: AbortSignal;
  readonly onRecord: (record: RecordDocument) => void;
}

/** The last try of one place in the group. */
export interface Sample<Trajectories> {
  readonly record: RecordDocument;
  readonly outcome: RolloutOutcome<Trajectories>;
}

export interface SampledGroup<Trajectories> {
  readonly scheduled: ScheduledTask;
  readonly taskDocument: string;
  /** One per place in the group, in order. */
  readonly samples: readonly Sample<Trajectories>[];
  /** Every try that was made, in order of place and try. */
  readonly tries: readonly RecordDocument[];
}

/** Score that counts for the group, null where there is none. */
export function gradedScore<Trajectories>(sample: Sample<Trajectories>): number | null {
  return sample.outcome.kind === "scored" ? sample.outcome.score.score : null;
}

export async function sampleGroup<Trajectories>(
  scheduled: ScheduledTask,
  settings: GroupSettings,
  context: GroupContext<Trajectories>,
): Promise<SampledGroup<Trajectories>> {
  const { task, epoch } = scheduled;
  const place: TaskPlace = { split: task.split, epoch, index: task.index };
  const taskDocument = taskDocumentId(place, context.attempt);
  await context.store.tasks.insert([
    {
      id: taskDocument,
      run: context.run,
      name: task.id,
      split: task.split,
      epoch,
      index: task.index,
      payload: task.payload,
      groupSize: settings.groupSize,
      status: "running",
      scores: [],
      created: context.clock.now(),
    },
  ]);
  const stop = linkedAbort(context.cancel);
  let disarm: (() => void) | null = null;
  const begin = () => {
    if (settings.deadline === null || disarm !== null) return;
    disarm = context.clock.after(settings.deadline, () =>
      stop.abort(
        new RollscopeError("SAMPLING_GROUP_DECIDED", "The group's deadline passed before this rollout was over.", {
          next: "Raise sampling.groupDeadline when such rollouts should count.",
        }),
      ),
    );
  };
  try {
    const tries = await allOrFirstError(
      Array.from({ length: settings.groupSize }, (_, sample) =>
        sampleWithRetries({ scheduled, place, taskDocument, sample, settings, begin, cancel: stop.signal }, context),
      ),
    );
    return {
      scheduled,
      taskDocument,
      samples: tries.map((each) => each.at(-1) as Sample<Trajectories>),
      tries: tries.flat().map((sample) => sample.record),
    };
  } finally {
    (disarm as (() => void) | null)?.();
    stop.dispose();
  }
}

/** Waits for all, also after one has failed, so that nothing of the group goes on behind the caller's back. */
async function allOrFirstError<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  return settled.map((each) => {
    if (each.status === "rejected") throw each.reason;
    return each.value;
  });
}

interface SampleRequest {
  readonly scheduled: ScheduledTask;
  readonly place: TaskPlace;
  readonly taskDocument: string;
  readonly sample: number;
  readonly settings: GroupSettings;
  readonly begin: () => void;
  readonly cancel: AbortSignal;
}

async function sampleWithRetries<Trajectories>(
  request: SampleRequest,
  context: GroupContext<Trajectories>,
): Promise<Sample<Trajectories>[]> {
  const tries: Sample<Trajectories>[] = [];
  for (let resample = 0; resample <= request.settings.retries; resample++) {
    const done = await sampleOnce(request, resample, context);
    tries.push(done);
    context.onRecord(done.record);
    if (done.outcome.kind !== "failed" || !done.outcome.retry || request.cancel.aborted) break;
  }
  return tries;
}

async function sampleOnce<Trajectories>(
  request: SampleRequest,
  resample: number,
  context: GroupContext<Trajectories>,
): Promise<Sample<Trajectories>> {
  const { place, sample, cancel, settings } = request;
  const { store, clock } = context;
  const created = newRecord({
    id: recordId(place, sample, resample, context.attempt),
    run: context.run,
    task: request.taskDocument,
    sample,
    split: place.split,
    created: clock.now(),
    resample,
    attempt: context.attempt,
  });
  let leave: () => void;
  try {
    leave = await context.limiter.enter(cancel);
  } catch (reason) {
    const error = reason as RollscopeError;
    const record: RecordDocument = {
      ...created,
      status: "cancelled",
      error: { code: error.code, message: `${error.message} ${error.next}`, call: null },
    };
    await store.records.insert([record]);
    return { record, outcome: { kind: "cancelled", error: record.error!, session: null, report: null } };
  }
  try {
    request.begin();
    let record: RecordDocument = {
      ...created,
      status: "running",
      timings: { started: clock.now(), ended: null, scored: null },
    };
    const change = async (...sets: RecordSet[]) => {
      for (const set of sets) record = { ...record, ...set };
      const results = await store.records.update(sets.map((set) => ({ id: record.id, set })));
      for (const refused of results) if (refused) throw refused;
    };
    await store.records.insert([record]);
    const outcome = await runRollout<Trajectories>(
      {
        record: record.id,
        streamKey: streamKeyOf(place, sample, resample),
        task: request.scheduled.task,
        settings: settings.sampling,
        limits: settings.limits,
        cancel,
        onScoring: (report) =>
          change(
            {
              status: "completed",
              stats: report.stats,
              policyVersions: report.policyVersions,
              timings: { ...record.timings, ended: clock.now() },
            },
            { status: "scoring" },
          ),
      },
      context,
    );
    await change(endOf(outcome, record, clock.now()));
    return { record, outcome };
  } finally {
    leave();
  }
}

function endOf<Trajectories>(outcome: RolloutOutcome<Trajectories>, record: RecordDocument, now: number): RecordSet {
  const wasScoring = record.status === "scoring";
  const ended = record.timings.ended ?? now;
  const reported =
    outcome.report === null || wasScoring
      ? {}
      : { stats: outcome.report.stats, policyVersions: outcome.report.policyVersions };
  switch (outcome.kind) {
    case "scored":
      return {
        status: "scored",
        score: outcome.score.score ?? "ungraded",
        reward: { ...outcome.score.breakdown },
        fields: { ...outcome.score.fields },
        labels: [...outcome.score.labels],
        timings: { ...record.timings, ended, scored: now },
      };
    case "failed":
      return {
        ...reported,
        status: "failed",
        error: outcome.error,
        // A trajectory that exists but could not be judged is ungraded; one that never ended has no score at all.
        score: wasScoring ? "ungraded" : null,
        timings: { ...record.timings, ended },
      };
    case "cancelled":
      return { ...reported, status: "cancelled", error: outcome.error, timings: { ...record.timings, ended } };
  }
}
