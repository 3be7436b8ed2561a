// The objective block of recipe.yaml: its keys, defaults and refusals, as one schema. What the keys mean is computed in
// agent-daemon/src/algorithms; nothing is computed here.
import { z } from "zod";
import { configError } from "./configError.ts";

/** The policy objectives; `custom` is one that the recipe's own code brings (see objectiveDefinition.ts). */
export const objectiveKinds = [
  "cross_entropy",
  "reinforce",
  "importance_sampling",
  "grpo",
  "ppo",
  "gspo",
  "minirl",
  "cispo",
  "tis",
  "topr",
  "kimi",
  "grpo2",
  "custom",
] as const;

export const aggregations = ["token-mean", "sequence-mean", "sequence-sum"] as const;

const interval = z
  .tuple([z.number().nonnegative(), z.number().nonnegative()])
  .refine(([low, high]) => low <= high, { error: "the lower bound must not exceed the upper one" });

const klSchema = z
  .strictObject({
    estimator: z
      .enum(["k1", "k2", "k3"])
      .optional()
      .describe(
        "Estimator of the KL term, with d = base − logp: k1 = −d, k2 = ½d², k3 = exp(d) − 1 − d. Needed with placement loss.",
      ),
    coef: z.number().nonnegative().describe("Weight of the KL term."),
    base: z
      .enum(["ref", "old"])
      .default("ref")
      .describe("What the policy is held to: the frozen reference, or the policy when this optimizer window began."),
    placement: z
      .enum(["loss", "reward"])
      .default("loss")
      .describe("loss: differentiated through logp. reward: −coef·(old − ref) of each token, a constant."),
  })
  .superRefine((kl, context) => {
    if (kl.placement === "loss" && kl.estimator === undefined) {
      context.addIssue({
        code: "custom",
        path: ["estimator"],
        message: "`estimator` has no default with placement loss: choose k1, k2 or k3",
      });
    }
  });

const entropySchema = z.strictObject({
  coef: z.number().nonnegative().describe("Weight of the entropy term."),
  target: z
    .number()
    .optional()
    .describe("Mean entropy to hold: adds coef·(target − mean)². Without it the loss gets −coef·mean."),
});

const valueSchema = z.strictObject({
  coef: z.number().nonnegative().describe("Weight of the critic's loss max((V−R)², (V_old+clamp(V−V_old,±clip)−R)²)."),
  clip: z.number().nonnegative().optional().describe("How far a value may move from V_old before its loss is clipped."),
});

const freshnessSchema = z.strictObject({
  decay: z
    .number()
    .nonnegative()
    .describe("Rate at which the bounds narrow with staleness: d = exp(−decay·staleness)."),
  capRatio: z.number().nonnegative().describe("Width of the bounds at staleness 0, in units of clipLow and clipHigh."),
});

const correctionSchema = z.strictObject({
  tokenTruncate: z
    .number()
    .positive()
    .optional()
    .describe("Weights each token by min(old/rollout, this). Refused with ratioBase rollout."),
  tokenMask: interval.optional().describe("Keeps tokens whose old/rollout lies in [low, high], bounds included."),
  sequenceMask: interval
    .optional()
    .describe("Keeps units whose geometric mean of old/rollout lies in [low, high], bounds included."),
  tokenVeto: z
    .number()
    .nonnegative()
    .optional()
    .describe("Drops a unit when old/rollout of any of its tokens is below this."),
  freshness: freshnessSchema
    .optional()
    .describe("Drops tokens that moved too far from the sampler, more narrowly the staler they are."),
});

export const objectiveSchema = z
  .strictObject({
    kind: z.enum(objectiveKinds).describe("Policy objective: the loss of one token."),
    clipLow: z.number().nonnegative().default(0.2).describe("The ratio's lower bound is 1 − clipLow."),
    clipHigh: z.number().nonnegative().default(0.28).describe("The ratio's upper bound is 1 + clipHigh."),
    dualClip: z
      .number()
      .gt(1)
      .optional()
      .describe("For negative advantages the surrogate never falls below dualClip·advantage."),
    ratioBase: z
      .enum(["old", "rollout"])
      .default("old")
      .describe("Denominator of the ratio: the trainer's old policy, or the sampler's recorded log-probability."),
    cap: z.number().positive().optional().describe("tis: upper bound of the ratio used as weight. No default."),
    softClip: z
      .number()
      .positive()
      .optional()
      .describe("grpo2: upper bound of the weight of a negative advantage's ratio above 1. No default."),
    ratioUnit: z
      .enum(["token", "trajectory"])
      .default("token")
      .describe("topr: the ratio of each token, or of its whole trajectory."),
    lengthNormalizer: z
      .number()
      .positive()
      .optional()
      .describe("sequence-sum: the constant length that every unit's sum is divided by. No default."),
    aggregation: z
      .enum(aggregations, {
        error: (issue) =>
          issue.input === undefined ? `\`aggregation\` has no default: choose ${aggregations.join(", ")}` : undefined,
      })
      .describe("How token losses become one number over the whole optimizer batch. No default."),
    unit: z
      .enum(["trajectory", "turn"])
      .default("trajectory")
      .describe("What a sequence is for sequence means, GSPO, sequence masks and vetoes."),
    kl: klSchema.optional().describe("Penalty that holds the policy to a base."),
    entropy: entropySchema.optional().describe("Entropy bonus, or entropy target."),
    value: valueSchema
      .optional()
      .describe(
        "Loss of the critic, for advantages by gae. On the embedded engine the critic is a value head on the policy, trained at training.lr.",
      ),
    correction: correctionSchema
      .optional()
      .describe("Constant weights on the policy loss against trainer–sampler mismatch."),
    options: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("custom: values handed to the recipe's own objective as they are."),
  })
  .superRefine((config, context) => {
    const missing = (key: string, reader: string) =>
      context.addIssue({ code: "custom", path: [key], message: `\`${key}\` has no default and ${reader} needs it` });
    if (config.kind === "tis" && config.cap === undefined) missing("cap", "kind tis");
    if (config.kind === "grpo2" && config.softClip === undefined) missing("softClip", "kind grpo2");
    if (config.aggregation === "sequence-sum" && config.lengthNormalizer === undefined) {
      missing("lengthNormalizer", "aggregation sequence-sum");
    }
    if (config.correction?.tokenTruncate !== undefined && config.ratioBase === "rollout") {
      context.addIssue({
        code: "custom",
        path: ["correction", "tokenTruncate"],
        message:
          "`tokenTruncate` with `ratioBase: rollout` would count old/rollout twice; use ratioBase old or leave tokenTruncate out",
        params: { code: "OBJECTIVE_REFUSED" },
      });
    }
  });

/** With every default filled in. */
export type ObjectiveConfig = z.infer<typeof objectiveSchema>;
export type ObjectiveKind = ObjectiveConfig["kind"];
export type KlConfig = NonNullable<ObjectiveConfig["kl"]>;
export type EntropyConfig = NonNullable<ObjectiveConfig["entropy"]>;
export type CorrectionConfig = NonNullable<ObjectiveConfig["correction"]>;

/**
 * Parses an objective block and fills in its defaults.
 * @throws OBJECTIVE_KEY_MISSING, OBJECTIVE_REFUSED or OBJECTIVE_INVALID, `at.key` naming the key
 */
export function parseObjective(input: unknown): ObjectiveConfig {
  const parsed = objectiveSchema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw configError("objective", input, parsed.error, {
    missing: "OBJECTIVE_KEY_MISSING",
    invalid: "OBJECTIVE_INVALID",
  });
}
