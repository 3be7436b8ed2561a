// One synchronous wave: takes the next tasks in data order, samples a group of each, replaces groups without variance by
// further tasks up to a limit, and hands over the groups to train on. The result depends on tasks and scores alone, never on
// which rollout ended first.
import type { RecordCounts } from "../../../protocol/journal.ts";
import {
  type GroupContext,
  type GroupSettings,
  gradedScore,
  type SampledGroup,
  type ScheduledTask,
  sampleGroup,
} from "./group.ts";
import { decideWave, type GroupVerdict, judgeGroup } from "./groupGate.ts";
import { linkedAbort } from "./linkedAbort.ts";

export interface WaveSettings extends GroupSettings {
  /** Groups to hand over. */
  readonly groups: number;
  readonly minGroupSize: number;
  /** Most groups without variance that are replaced. */
  readonly refillLimit: number;
}

export interface Wave<Trajectories> {
  /** In data order. */
  readonly accepted: readonly SampledGroup<Trajectories>[];
  readonly replaced: readonly SampledGroup<Trajectories>[];
  readonly dropped: readonly SampledGroup<Trajectories>[];
  readonly counts: RecordCounts;
}

/**
 * @param nextTask gives the tasks in data order; null when there is none left
 * @throws the reason of `context.cancel` when that was aborted, records being cancelled in the store; or what the store threw
 */
export async function sampleWave<Trajectories>(
  nextTask: () => ScheduledTask | null,
  settings: WaveSettings,
  context: GroupContext<Trajectories>,
): Promise<Wave<Trajectories>> {
  const running: Promise<void>[] = [];
  const stop = linkedAbort(context.cancel);
  const groupContext = { ...context, cancel: stop.signal };
  const groups: SampledGroup<Trajectories>[] = [];
  const verdicts: GroupVerdict[] = [];
  let refills = settings.refillLimit;

  const start = (): void => {
    const scheduled = nextTask();
    if (scheduled === null) return;
    const place = running.length;
    running.push(
      sampleGroup(scheduled, settings, groupContext).then(
        (group) => {
          groups[place] = group;
          const verdict = judgeGroup(group.samples.map(gradedScore), settings.minGroupSize);
          verdicts[place] = verdict;
          // How many groups are started is a fixed point of the scores in data order, so it may happen at once.
          if (verdict.kind !== "uniform" || refills === 0 || stop.signal.aborted) return;
          refills -= 1;
          start();
        },
        (error: unknown) => stop.abort(error),
      ),
    );
  };
  for (let group = 0; group < settings.groups; group++) start();
  for (let place = 0; place < running.length; place++) await running[place];
  stop.dispose();
  stop.signal.throwIfAborted();

  const fates = decideWave(verdicts, settings.refillLimit);
  const withFate = (fate: (typeof fates)[number]) => groups.filter((_, place) => fates[place] === fate);
  const wave = { accepted: withFate("accepted"), replaced: withFate("replaced"), dropped: withFate("dropped") };
  await settle(wave, context);
  const stayed = verdicts.filter((verdict, place) => verdict.kind === "uniform" && fates[place] === "accepted").length;
  return { ...wave, counts: { ...countRecords(groups), ...countGroups(wave), withoutVariance: stayed } };
}

type Fates<Trajectories> = Omit<Wave<Trajectories>, "counts">;

/** Scored records of accepted groups become ready; everything else that was scored is abandoned. */
async function settle<Trajectories>(wave: Fates<Trajectories>, { store }: GroupContext<Trajectories>): Promise<void> {
  const all = [...wave.accepted, ...wave.replaced, ...wave.dropped];
  await store.tasks.update(
    all.map((group) => ({
      id: group.taskDocument,
      set: { status: "completed" as const, scores: group.samples.map(gradedScore) },
    })),
  );
  const accepted = new Set(wave.accepted);
  const updates = all.flatMap((group) =>
    group.samples
      .filter((sample) => sample.record.status === "scored")
      .map((sample) => ({
        id: sample.record.id,
        set: {
          status: accepted.has(group) && gradedScore(sample) !== null ? ("ready" as const) : ("abandoned" as const),
        },
      })),
  );
  for (const refused of await store.records.update(updates)) if (refused) throw refused;
}

function countGroups<Trajectories>(wave: Fates<Trajectories>) {
  return {
    groups: wave.accepted.length,
    replaced: wave.replaced.length,
    dropped: wave.dropped.length,
  };
}

function countRecords<Trajectories>(groups: readonly SampledGroup<Trajectories>[]) {
  const tries = groups.flatMap((group) => group.tries);
  const samples = groups.flatMap((group) => group.samples);
  return {
    records: tries.length,
    graded: samples.filter((sample) => gradedScore(sample) !== null).length,
    ungraded: samples.filter((sample) => sample.record.score === "ungraded").length,
    failed: tries.filter((record) => record.status === "failed").length,
    cancelled: tries.filter((record) => record.status === "cancelled").length,
    retried: tries.length - samples.length,
    truncated: samples.filter((sample) => sample.record.stats.truncated).length,
  };
}
