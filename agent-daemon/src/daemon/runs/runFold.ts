// What a run's journal says so far, folded event by event: attempts, position, evaluations, warnings, checkpoints. Pure and bounded;
// whether a process is there is not its matter, and metric values stand in metricTable.ts.
import type { EndStatus, JournalError, JournalEvent, RunPhase } from "../../../../protocol/journal.ts";
import type { RunSnapshot, RunSummary } from "../../../../protocol/runView.ts";

type Attempt = RunSnapshot["attempts"][number];
type Evaluation = RunSnapshot["evaluations"][number];

/** Newest entries kept of what can go on for ever. */
const keptWarnings = 200;
const keptCheckpoints = 100;
const keptEvaluations = 2000;

export class RunFold {
  /** Number of the last event. */
  cursor = 0;
  run = "";
  recipe = "";
  model = "";
  steps = 0;
  step = 0;
  phase: RunPhase | null = null;
  begun: number | null = null;
  lastAt: number | null = null;
  ended: { readonly status: EndStatus; readonly at: number; readonly error: JournalError | null } | null = null;
  reward: number | null = null;
  loss: number | null = null;
  records: RunSnapshot["records"] = null;
  attempts: Attempt[] = [];
  evaluations: Evaluation[] = [];
  warnings: RunSnapshot["warnings"] = [];
  checkpoints: RunSnapshot["checkpoints"] = [];

  get attempt(): number {
    return this.attempts.at(-1)?.attempt ?? 0;
  }

  /** Last step of an attempt that still counts; null: all of them do. */
  voidedAfter(attempt: number): number | null {
    return this.attempts.find((each) => each.attempt === attempt)?.voidedAfter ?? null;
  }

  read(event: JournalEvent): void {
    this.cursor = event.n;
    this.lastAt = event.at;
    switch (event.type) {
      case "started": {
        const from = event.resumed?.step ?? 0;
        this.run = event.run;
        this.recipe = event.recipe;
        this.model = event.model;
        this.steps = event.steps;
        this.step = from;
        this.phase = "opening";
        this.begun ??= event.at;
        this.ended = null;
        this.attempts = [
          ...this.attempts.map((earlier) => ({
            ...earlier,
            voidedAfter: earlier.to > from ? Math.min(earlier.voidedAfter ?? from, from) : earlier.voidedAfter,
          })),
          { attempt: event.attempt, from, to: from, begun: event.at, voidedAfter: null },
        ];
        return;
      }
      case "phase":
        this.phase = event.phase;
        return;
      case "records":
        this.records = event.counts;
        return;
      case "step": {
        this.step = event.step;
        this.reward = event.metrics["reward_mean"] ?? null;
        this.loss = event.metrics["loss"] ?? null;
        const own = this.attempts.at(-1);
        if (own !== undefined && own.attempt === event.attempt)
          this.attempts = [...this.attempts.slice(0, -1), { ...own, to: Math.max(own.to, event.step) }];
        return;
      }
      case "evaluation": {
        const { tasks, scores } = event.summary;
        this.evaluations.push({ step: event.step, attempt: event.attempt, scores, tasks });
        // The first one is what the others are compared with.
        if (this.evaluations.length > keptEvaluations) this.evaluations.splice(1, 1);
        return;
      }
      case "checkpoint":
        this.checkpoints.push({ step: event.step, checkpoint: event.checkpoint });
        if (this.checkpoints.length > keptCheckpoints) this.checkpoints.shift();
        return;
      case "warning":
        this.warnings.push({ step: event.step, at: event.at, error: event.error });
        if (this.warnings.length > keptWarnings) this.warnings.shift();
        return;
      case "ended":
        this.phase = null;
        this.ended = { status: event.status, at: event.at, error: event.error };
        return;
      case "mismatch":
        return;
    }
  }

  /** Base is the first evaluation before any step; latest the newest one that counts. */
  evaluation(): RunSummary["evaluation"] {
    const counting = this.evaluations.filter(({ attempt, step }) => step <= (this.voidedAfter(attempt) ?? step));
    return {
      base: counting.find(({ step }) => step === 0)?.scores["score"] ?? null,
      latest: counting.at(-1)?.scores["score"] ?? null,
    };
  }

  /** Copies, so that a snapshot that waits to be sent does not change. */
  snapshotParts(): Pick<RunSnapshot, "cursor" | "attempts" | "evaluations" | "records" | "warnings" | "checkpoints"> {
    return {
      cursor: this.cursor,
      attempts: [...this.attempts],
      evaluations: [...this.evaluations],
      records: this.records,
      warnings: [...this.warnings],
      checkpoints: [...this.checkpoints],
    };
  }
}
