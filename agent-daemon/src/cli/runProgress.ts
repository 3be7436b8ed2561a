// What is known of a run in progress, folded from its journal: curves, evaluations, warnings and the time that is left. Pure;
// the live view, the plain lines and `list` all read it.
import type { EndStatus, EvaluationSummary, JournalError, JournalEvent, RunPhase } from "../../../protocol/journal.ts";
import { type Curve, shownValue } from "./shownMetrics.ts";

export interface StepPoint {
  readonly step: number;
  readonly metrics: { readonly [name: string]: number };
  readonly skipped: { readonly code: string; readonly reason: string } | null;
  /** From the step before (or the attempt's begin) to this one. */
  readonly milliseconds: number;
}

export interface RunProgress {
  readonly run: string;
  readonly recipe: string;
  readonly model: string;
  readonly attempt: number;
  readonly steps: number;
  readonly step: number;
  /** Steps after which the held-out tasks are evaluated. */
  readonly evaluationSteps: readonly number[];
  readonly phase: RunPhase | null;
  /** One per committed step, in order; a resume takes back those after its checkpoint. */
  readonly points: readonly StepPoint[];
  readonly evaluations: readonly {
    readonly step: number;
    readonly summary: EvaluationSummary;
    readonly milliseconds: number;
  }[];
  readonly warnings: readonly JournalError[];
  /** Milliseconds since 1970. */
  readonly begun: number | null;
  readonly attemptBegun: number | null;
  readonly lastAt: number | null;
  readonly ended: {
    readonly status: EndStatus;
    readonly error: JournalError | null;
    readonly peakMemory: number | null;
    readonly record: string | null;
  } | null;
  /** When the last step, evaluation or attempt ended: where the next step's time begins. */
  readonly mark: number | null;
}

export const noProgress: RunProgress = {
  run: "",
  recipe: "",
  model: "",
  attempt: 0,
  steps: 0,
  step: 0,
  evaluationSteps: [],
  phase: null,
  points: [],
  evaluations: [],
  warnings: [],
  begun: null,
  attemptBegun: null,
  lastAt: null,
  ended: null,
  mark: null,
};

export function foldEvent(progress: RunProgress, event: JournalEvent): RunProgress {
  const next: RunProgress = { ...progress, lastAt: event.at };
  switch (event.type) {
    case "started": {
      const from = event.resumed?.step ?? 0;
      return {
        ...next,
        run: event.run,
        recipe: event.recipe,
        model: event.model,
        attempt: event.attempt,
        steps: event.steps,
        step: from,
        evaluationSteps: event.evaluations,
        phase: "opening",
        points: progress.points.filter((point) => point.step <= from),
        evaluations: event.resumed === null ? [] : progress.evaluations.filter((each) => each.step <= from),
        begun: progress.begun ?? event.at,
        attemptBegun: event.at,
        ended: null,
        mark: event.at,
      };
    }
    case "phase":
      return { ...next, phase: event.phase };
    case "step":
      return {
        ...next,
        step: event.step,
        points: [
          ...progress.points,
          {
            step: event.step,
            metrics: event.metrics,
            skipped: event.skipped,
            milliseconds: event.at - (progress.mark ?? event.at),
          },
        ],
        mark: event.at,
      };
    case "evaluation":
      return {
        ...next,
        evaluations: [
          ...progress.evaluations,
          { step: event.step, summary: event.summary, milliseconds: event.milliseconds },
        ],
        mark: event.at,
      };
    case "warning":
      return { ...next, warnings: [...progress.warnings, event.error] };
    case "ended":
      return {
        ...next,
        phase: null,
        ended: { status: event.status, error: event.error, peakMemory: event.peakMemory, record: event.record },
      };
    case "mismatch":
    case "records":
    case "checkpoint":
      return next;
  }
}

/** The values of a curve, one per step; NaN where a step has none. */
export function curveOf(progress: RunProgress, curve: Pick<Curve, "metrics">): number[] {
  return progress.points.map((point) => shownValue(point.metrics, curve.metrics) ?? Number.NaN);
}

/**
 * Milliseconds until the end: the steps that are left at the median of the last ten, and the evaluations that are left at
 * the time of the last one. null before the first step.
 */
export function timeLeft(progress: RunProgress): number | null {
  const recent = progress.points
    .slice(-10)
    .map((point) => point.milliseconds)
    .sort((a, b) => a - b);
  if (recent.length === 0) return null;
  const median = recent[recent.length >> 1] as number;
  const last = progress.evaluations.at(-1);
  const evaluationsLeft = progress.evaluationSteps.filter((step) => step > (last?.step ?? -1)).length;
  return (progress.steps - progress.step) * median + evaluationsLeft * (last?.milliseconds ?? 0);
}
