// A session's calls as training reads them: one token path per end of the tree. Every sampled token is trained in exactly one
// of them, the first that has it, so that branches never count an answer twice.
import type { Trajectory } from "../../../protocol/trajectory.ts";
import { type CapturedCall, pathTo, tokenCount } from "./capturedCall.ts";

/** What capture knows; group and score are added when they are decided. */
export type CapturedTrajectory = Omit<Trajectory, "group" | "score">;

export interface TrajectoryOptions {
  /** mask: the tokens of calls that were cut off by their limit are not trained. */
  readonly truncated: "keep" | "mask";
}

/** `calls` in the order they ended. Failed and cancelled ones have no trajectory: nobody finished them. */
export function trajectoriesOf(calls: readonly CapturedCall[], options: TrajectoryOptions): CapturedTrajectory[] {
  const completed = calls.filter((call) => call.status === "completed");
  const continued = new Set<CapturedCall>();
  for (const { parent, keptTokens } of completed) {
    if (parent !== null && keptTokens === tokenCount(parent)) continued.add(parent);
  }
  const trained = new Map<CapturedCall, number>();
  return completed.filter((call) => !continued.has(call)).map((call) => trajectoryOf(call, trained, options));
}

/** `trained`: per call how many of its first tokens a trajectory has trained already; is added to. */
function trajectoryOf(
  last: CapturedCall,
  trained: Map<CapturedCall, number>,
  options: TrajectoryOptions,
): CapturedTrajectory {
  const path = pathTo(last);
  const n = tokenCount(last);
  const tokens = new Int32Array(n);
  const trainable = new Uint8Array(n);
  const call = new Int32Array(n).fill(-1);
  const turn = new Int32Array(n);
  const temperature = new Float32Array(n).fill(1);
  const version = new Int32Array(n).fill(-1);
  const rollout = new Float32Array(n).fill(Number.NaN);
  for (const [depth, node] of path.entries()) {
    // A child may keep only part of this call's conversation, and a later one only part of that.
    const end = path.slice(depth + 1).reduce((least, child) => Math.min(least, child.keptTokens), n);
    if (node.keptTokens >= end) continue;
    const promptEnd = node.keptTokens + node.promptDelta.length;
    tokens.set(node.promptDelta.subarray(0, end - node.keptTokens), node.keptTokens);
    turn.fill(depth, node.keptTokens, end);
    const count = Math.min(node.output.length, Math.max(0, end - promptEnd));
    if (count === 0) continue;
    tokens.set(node.output.subarray(0, count), promptEnd);
    rollout.set(node.logprobs.subarray(0, count), promptEnd);
    call.fill(depth, promptEnd, promptEnd + count);
    temperature.fill(node.temperature, promptEnd, promptEnd + count);
    version.set(versionsOf(node).subarray(0, count), promptEnd);
    const isTrained = node.temperature > 0 && !(options.truncated === "mask" && node.finishReason === "length");
    const before = trained.get(node) ?? 0;
    if (isTrained && count > before) trainable.fill(1, promptEnd + before, promptEnd + count);
    trained.set(node, Math.max(before, count));
  }
  // Nothing predicts the first token.
  if (n > 0) trainable[0] = 0;
  return {
    record: last.record,
    calls: path.map((node) => node.id),
    truncated: path.some((node) => node.finishReason === "length"),
    tokens,
    trainable,
    call,
    turn,
    temperature,
    version,
    rollout,
  };
}

/** [output] policy version of each sampled token. */
export function versionsOf(call: CapturedCall): Int32Array {
  const versions = new Int32Array(call.output.length);
  let at = 0;
  for (const run of call.versions) {
    versions.fill(run.version, at, at + run.length);
    at += run.length;
  }
  return versions;
}
