// What a session tells about itself once it is over: its calls and tool events as evaluate sees them, and the counts that
// queries ask about.
import type { CallView, ToolEventView } from "../../../protocol/agent.ts";
import type { RecordStats } from "../../../protocol/record.ts";
import { type CapturedCall, pathTo, requestMessages } from "./capturedCall.ts";
import type { CapturedTrajectory } from "./trajectories.ts";

export interface SessionReport {
  /** In the order they ended. */
  readonly calls: readonly CallView[];
  readonly toolEvents: readonly ToolEventView[];
  readonly stats: RecordStats;
  /** Oldest and newest policy version among the sampled tokens; null when nothing was sampled. */
  readonly policyVersions: { readonly min: number; readonly max: number } | null;
}

export function sessionReport(
  calls: readonly CapturedCall[],
  toolEvents: readonly ToolEventView[],
  trajectories: readonly CapturedTrajectory[],
): SessionReport {
  const versions = calls.flatMap((call) => call.versions.map((run) => run.version));
  return {
    calls: calls.map(callView),
    toolEvents,
    stats: {
      turns: calls.reduce((most, call) => Math.max(most, pathTo(call).length), 0),
      calls: calls.length,
      promptTokens: sum(calls, (call) => call.usage.promptTokens),
      outputTokens: sum(calls, (call) => call.usage.completionTokens),
      trainableTokens: sum(trajectories, ({ trainable }) => trainable.reduce((total, one) => total + one, 0)),
      truncated: calls.some((call) => call.finishReason === "length"),
      toolErrors: toolEvents.filter((event) => event.error !== undefined).length,
      driftedCalls: calls.filter((call) => call.drift.kind !== "none").length,
      staleness: null,
      mismatch: null,
    },
    policyVersions: versions.length === 0 ? null : { min: Math.min(...versions), max: Math.max(...versions) },
  };
}

/** The messages of a call are put together when they are asked for: all of them at once would be quadratic in turns. */
function callView(call: CapturedCall): CallView {
  return {
    id: call.id,
    parent: call.parent?.id ?? null,
    get messages() {
      return requestMessages(call);
    },
    message: call.message ?? { role: "assistant", content: call.text },
    text: call.text,
    finishReason: call.finishReason ?? "error",
    promptTokens: call.usage.promptTokens,
    completionTokens: call.usage.completionTokens,
  };
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
