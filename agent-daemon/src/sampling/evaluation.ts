// Evaluation on the held-out tasks: one rollout each, judged by the recipe's evaluate, averaged by name. Nothing of it is ever
// handed to training; a record that failed or is ungraded is left out of the means and counted.
import type { Task } from "../../../protocol/agent.ts";
import type { EvaluationSummary } from "../../../protocol/journal.ts";
import { type GroupContext, type GroupSettings, gradedScore, type Sample, sampleGroup } from "./group.ts";
import { linkedAbort } from "./linkedAbort.ts";

/**
 * @param step optimizer steps behind the weights; it names the records' random streams
 * @throws the reason of `context.cancel` when that was aborted
 */
export async function evaluateTasks<Trajectories>(
  tasks: readonly Task[],
  step: number,
  settings: Omit<GroupSettings, "groupSize" | "deadline">,
  context: GroupContext<Trajectories>,
): Promise<EvaluationSummary> {
  const stop = linkedAbort(context.cancel);
  const ended = await Promise.allSettled(
    tasks.map(async (task) => {
      try {
        return await sampleGroup(
          { task, epoch: step },
          { ...settings, groupSize: 1, deadline: null },
          { ...context, cancel: stop.signal },
        );
      } catch (error) {
        stop.abort(error);
        throw error;
      }
    }),
  );
  stop.dispose();
  stop.signal.throwIfAborted();
  const groups = ended.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  await context.store.tasks.update(
    groups.map((group) => ({
      id: group.taskDocument,
      set: { status: "completed" as const, scores: group.samples.map(gradedScore) },
    })),
  );
  return summarize(groups.flatMap((group) => group.samples));
}

export function summarize<Trajectories>(samples: readonly Sample<Trajectories>[]): EvaluationSummary {
  const sums = new Map<string, { sum: number; count: number }>();
  const add = (name: string, value: number) => {
    const { sum, count } = sums.get(name) ?? { sum: 0, count: 0 };
    sums.set(name, { sum: sum + value, count: count + 1 });
  };
  let graded = 0;
  for (const sample of samples) {
    const score = gradedScore(sample);
    if (score === null || sample.outcome.kind !== "scored") continue;
    graded += 1;
    add("score", score);
    for (const [name, value] of Object.entries(sample.outcome.score.breakdown)) if (name !== "score") add(name, value);
  }
  const count = (test: (sample: Sample<Trajectories>) => boolean) => samples.filter(test).length;
  return {
    tasks: samples.length,
    graded,
    ungraded: count(({ record }) => record.score === "ungraded"),
    failed: count(({ record }) => record.status === "failed"),
    truncated: count(({ record }) => record.stats.truncated),
    scores: Object.fromEntries([...sums].map(([name, { sum, count: n }]) => [name, sum / n])),
  };
}
