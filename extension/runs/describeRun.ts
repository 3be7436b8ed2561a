// How a run is put into words and icons: lists, status bar, tooltips. Pure; text from recipes and models stays text.
import type { Advisory } from "../../protocol/advisory.ts";
import type { RunStatus, RunSummary } from "../../protocol/runView.ts";

const icons: Readonly<Record<RunStatus, string>> = {
  starting: "loading~spin",
  running: "sync~spin",
  paused: "debug-pause",
  stopping: "loading~spin",
  completed: "pass",
  stopped: "circle-slash",
  failed: "error",
  crashed: "bug",
  lost: "question",
};

export function runIcon(status: RunStatus): string {
  return icons[status];
}

/** What `when` clauses of menus read. */
export function runContext(run: RunSummary): string {
  switch (run.status) {
    case "running":
      return "run.running";
    case "paused":
      return "run.paused";
    case "starting":
    case "stopping":
      return "run.busy";
    case "completed":
      return "run.completed";
    default:
      return "run.resumable";
  }
}

/** Four significant digits; what is no number is named. */
export function shortNumber(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const text =
    Math.abs(value) >= 10_000 || (value !== 0 && Math.abs(value) < 1e-3)
      ? value.toExponential(2)
      : value.toPrecision(4);
  return text.includes("e") ? text.replace(/\.?0+e/, "e") : text.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

/** "12/40 · reward 0.52 · sampling"; a run that was broken off says so first. */
export function runLine(run: RunSummary): string {
  const parts: string[] = [];
  const whole = run.status === "completed" && run.steps > 0;
  if (run.status !== "running" && !whole) parts.push(run.status);
  if (run.steps > 0) parts.push(`${run.step}/${run.steps}`);
  if (run.reward !== null) parts.push(`reward ${shortNumber(run.reward)}`);
  if (run.status === "running" && run.phase !== null) parts.push(run.phase);
  if (whole) parts.push(run.status);
  return parts.join(" · ");
}

export function activeAdvisories(run: RunSummary): Advisory[] {
  return run.advisories.filter((advisory) => advisory.inForce);
}

/** Everything that a summary knows, a line each. */
export function runFacts(run: RunSummary): string[] {
  const { base, latest } = run.evaluation;
  const lines = [
    `${run.recipe}: ${runLine(run)}`,
    `Step: ${run.step} of ${run.steps}`,
    `Model: ${run.model}`,
    ...(run.attempt > 1 ? [`Attempt: ${run.attempt}`] : []),
    ...(run.loss === null ? [] : [`Loss: ${shortNumber(run.loss)}`]),
    ...(latest === null ? [] : [`Held out: ${base === null ? "" : `${shortNumber(base)} → `}${shortNumber(latest)}`]),
    `Folder: ${run.folder}`,
  ];
  if (run.crash !== null) lines.push(run.crash.message, run.crash.next);
  else if (run.error !== null) lines.push(`${run.error.code}: ${run.error.message}`, run.error.next);
  return lines;
}

export interface StatusText {
  readonly text: string;
  readonly tooltip: readonly string[];
  readonly alarming: boolean;
}

export type StatusInput =
  | { readonly kind: "idle" }
  | { readonly kind: "connecting" }
  | { readonly kind: "trouble"; readonly code: string; readonly message: string; readonly next: string }
  | { readonly kind: "connected"; readonly runs: readonly RunSummary[]; readonly version: string };

/** The one status bar item: connection, progress of what runs, and what needs a look. */
export function statusText(input: StatusInput): StatusText {
  if (input.kind === "idle") return { text: "$(pulse) Rollscope", tooltip: ["Not connected yet."], alarming: false };
  if (input.kind === "connecting") {
    return { text: "$(loading~spin) Rollscope", tooltip: ["Connecting to the daemon…"], alarming: false };
  }
  if (input.kind === "trouble") {
    return {
      text: "$(debug-disconnect) Rollscope",
      tooltip: [`${input.message} (${input.code})`, input.next],
      alarming: true,
    };
  }
  const active = input.runs.filter((run) => ["starting", "running", "paused", "stopping"].includes(run.status));
  const warned = active.flatMap((run) => activeAdvisories(run));
  const first = active[0];
  const progress =
    first === undefined
      ? "$(pulse) Rollscope"
      : active.length > 1
        ? `$(${icons.running}) ${active.length} runs`
        : `$(${icons[first.status]}) ${first.recipe} ${first.step}/${first.steps}`;
  return {
    text: warned.length === 0 ? progress : `${progress} $(warning) ${warned.length}`,
    tooltip: [
      `Daemon ${input.version}, ${input.runs.length} known ${input.runs.length === 1 ? "run" : "runs"}.`,
      ...active.map((run) => `${run.recipe}: ${runLine(run)}`),
      ...warned.map((advisory) => `⚠ ${advisory.sentence}`),
    ],
    alarming: warned.some((advisory) => advisory.severity === "severe"),
  };
}
