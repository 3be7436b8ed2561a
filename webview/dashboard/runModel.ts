// A run as the dashboard shows it: the snapshot, folded with the events that follow. Pure; metric values go to bucketStore.ts.
import type { JournalEvent } from "../../protocol/journal.ts";
import type { RunSnapshot, RunSummary } from "../../protocol/runView.ts";

export interface RunModel extends RunSnapshot {
  /** When steps of the newest attempt were committed, as far as they were seen here: for the time that is left. */
  readonly stepTimes: readonly number[];
}

const keptStepTimes = 20;
const keptWarnings = 200;

export function modelOf(snapshot: RunSnapshot): RunModel {
  return { ...snapshot, stepTimes: [] };
}

export function withEvents(model: RunModel, events: readonly JournalEvent[], summary: RunSummary): RunModel {
  const next = { ...model, summary };
  for (const event of events) {
    // An event that a snapshot already holds changes nothing.
    if (event.n > next.cursor) Object.assign(next, changeOf(next, event), { cursor: event.n });
  }
  return next;
}

function changeOf(model: RunModel, event: JournalEvent): Partial<RunModel> {
  switch (event.type) {
    case "started": {
      const from = event.resumed?.step ?? 0;
      const earlier = model.attempts.map((attempt) => ({
        ...attempt,
        voidedAfter: attempt.to > from ? Math.min(attempt.voidedAfter ?? from, from) : attempt.voidedAfter,
      }));
      return {
        attempts: [...earlier, { attempt: event.attempt, from, to: from, begun: event.at, voidedAfter: null }],
        stepTimes: [],
      };
    }
    case "records":
      return { records: event.counts };
    case "step": {
      const attempts = model.attempts.map((attempt) =>
        attempt.attempt === event.attempt ? { ...attempt, to: Math.max(attempt.to, event.step) } : attempt,
      );
      const known = new Set(model.metricNames);
      const fresh = [...Object.keys(event.metrics), ...Object.keys(event.timings)].filter((name) => !known.has(name));
      return {
        attempts,
        stepTimes: [...model.stepTimes, event.at].slice(-keptStepTimes),
        ...(fresh.length === 0 ? {} : { metricNames: [...model.metricNames, ...fresh] }),
      };
    }
    case "evaluation": {
      const { scores, tasks } = event.summary;
      return { evaluations: [...model.evaluations, { step: event.step, attempt: event.attempt, scores, tasks }] };
    }
    case "checkpoint":
      return { checkpoints: [...model.checkpoints, { step: event.step, checkpoint: event.checkpoint }] };
    case "warning":
      return {
        warnings: [...model.warnings, { step: event.step, at: event.at, error: event.error }].slice(-keptWarnings),
      };
    default:
      return {};
  }
}

/** Milliseconds until the last step, at the pace of the newest steps; null where there is no pace yet or nothing to wait for. */
export function timeLeft(model: RunModel, now: number): number | null {
  const { summary, stepTimes, attempts } = model;
  const open = summary.steps - summary.step;
  if (open <= 0 || (summary.status !== "running" && summary.status !== "stopping")) return null;
  if (stepTimes.length >= 3) {
    const pace = (stepTimes.at(-1)! - stepTimes[0]!) / (stepTimes.length - 1);
    return Math.max(0, pace * open - Math.max(0, now - stepTimes.at(-1)!));
  }
  const attempt = attempts.at(-1);
  const done = attempt === undefined ? 0 : attempt.to - attempt.from;
  return attempt === undefined || done === 0 ? null : ((now - attempt.begun) / done) * open;
}

/** First and last step that any attempt has; null before the first step. */
export function stepBounds(models: readonly RunModel[]): { from: number; to: number } | null {
  const attempts = models.flatMap((model) => model.attempts).filter((attempt) => attempt.to > attempt.from);
  const evaluated = models.flatMap((model) => model.evaluations.map((evaluation) => evaluation.step));
  const from = Math.min(...attempts.map((attempt) => attempt.from + 1), ...evaluated);
  const to = Math.max(...attempts.map((attempt) => attempt.to), ...evaluated);
  return from <= to ? { from, to } : null;
}
