// How another process talks to a running coordinator: control.json in the run folder says where it listens, and one line of
// JSON each way carries a command and its answer.
import { z } from "zod";
import { runPhases } from "./journal.ts";

/** Contents of control.json, readable by the run's owner only. */
export const controlAddressSchema = z.strictObject({
  host: z.string().min(1),
  port: z.int().min(1).max(65535),
  /** Shown with every request. */
  token: z.string().min(32),
  pid: z.int().min(1),
  attempt: z.int().min(1),
});
export type ControlAddress = z.infer<typeof controlAddressSchema>;

export const controlCommandSchema = z.enum(["status", "stop", "stop-now", "pause", "resume"]);
export type ControlCommand = z.infer<typeof controlCommandSchema>;

export const controlRequestSchema = z.strictObject({ token: z.string(), command: controlCommandSchema });

export const controlStateSchema = z.strictObject({
  run: z.string().min(1),
  pid: z.int().min(1),
  attempt: z.int().min(1),
  phase: z.enum(runPhases),
  /** Optimizer steps committed, of how many. */
  step: z.int().min(0),
  steps: z.int().min(0),
  pausing: z.boolean(),
  stopping: z.boolean(),
});
export type ControlState = z.infer<typeof controlStateSchema>;

export const controlAnswerSchema = z.discriminatedUnion("ok", [
  z.strictObject({ ok: z.literal(true), state: controlStateSchema }),
  z.strictObject({ ok: z.literal(false), code: z.string(), message: z.string() }),
]);
export type ControlAnswer = z.infer<typeof controlAnswerSchema>;
