// What the daemon notices about a run and says in words. An advisory holds no advice that its numbers do not support.
import { z } from "zod";
import { journalNumberSchema } from "./journal.ts";

export const advisoryKinds = [
  "klSpike",
  "stalledPhase",
  "groupsAllEqual",
  "entropyCollapse",
  "lengthRunaway",
  "mismatchTrend",
  "clipFraction",
  "gradientNorm",
  "nonFiniteMetric",
] as const;

/** Where a person can look on: a step's trajectories, one record, a metric, a key of the recipe. */
export const advisoryLinkSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("step"), step: z.int().min(0) }),
  z.object({ kind: z.literal("record"), record: z.string().min(1) }),
  z.object({ kind: z.literal("metric"), metric: z.string().min(1) }),
  z.object({ kind: z.literal("recipeKey"), key: z.string().min(1) }),
]);
export type AdvisoryLink = z.infer<typeof advisoryLinkSchema>;

export const advisorySchema = z.object({
  kind: z.enum(advisoryKinds),
  severity: z.enum(["note", "warning", "severe"]),
  /** Steps in which it was seen. */
  from: z.int().min(0),
  to: z.int().min(0),
  /** False once the numbers are usual again. */
  inForce: z.boolean(),
  /** What is the case, with its numbers. */
  sentence: z.string(),
  /** Candidates, likeliest first, each a sentence. */
  causes: z.array(z.string()),
  numbers: z.record(z.string(), journalNumberSchema),
  links: z.array(advisoryLinkSchema),
});
export type Advisory = z.infer<typeof advisorySchema>;
