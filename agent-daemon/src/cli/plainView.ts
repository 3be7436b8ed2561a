// A run as plain lines, for logs and pipes: one line a step, one an evaluation, one a warning. Pure.
import type { JournalEvent } from "../../../protocol/journal.ts";
import { evaluationLine } from "./evaluationTable.ts";
import { type RunProgress, timeLeft } from "./runProgress.ts";
import { lineMetrics, shownValue } from "./shownMetrics.ts";
import { formatDuration, formatNumber } from "./terminal/numbers.ts";
import { harmless } from "./terminal/text.ts";

/** @param after what is known after the event */
export function plainLines(event: JournalEvent, after: RunProgress): string[] {
  switch (event.type) {
    case "started": {
      const from = event.resumed === null ? "" : `, attempt ${event.attempt}, from step ${event.resumed.step}`;
      return [`run ${event.run}: ${event.recipe} on ${event.model}, ${event.steps} steps, seed ${event.seed}${from}`];
    }
    case "step": {
      const values = lineMetrics.flatMap(({ title, metrics }) => {
        const value = shownValue(event.metrics, metrics);
        return value === undefined ? [] : [`${title} ${formatNumber(value)}`];
      });
      const left = timeLeft(after);
      const times = [
        formatDuration(after.points.at(-1)?.milliseconds ?? 0),
        ...(left === null || event.step === after.steps ? [] : [`${formatDuration(left)} left`]),
      ];
      const skipped = event.skipped === null ? [] : [`SKIPPED: ${event.skipped.reason}`];
      return [[`step ${event.step}/${after.steps}`, ...values, ...times, ...skipped].join("  ")];
    }
    case "evaluation": {
      const { tasks, failed, truncated } = event.summary;
      const notes = [`${tasks} tasks`, ...(failed > 0 ? [`${failed} failed`] : []), `${truncated} cut off`];
      return [`${evaluationLine(after.evaluations)}  (${notes.join(", ")}, ${formatDuration(event.milliseconds)})`];
    }
    case "warning":
      return [harmless(`warning: ${event.error.message} ${event.error.next} [${event.error.code}]`)];
    case "phase":
      return event.phase === "paused" ? ["paused; `rollscope resume` goes on"] : [];
    case "mismatch":
    case "records":
    case "checkpoint":
    case "ended":
      return [];
  }
}
