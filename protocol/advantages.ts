// The advantages block of recipe.yaml: how scores become advantages. Computed in agent-daemon/src/algorithms/advantages.ts.
import { z } from "zod";
import { configError } from "./configError.ts";

export const advantageEstimators = [
  "group_normalized",
  "group_mean",
  "leave_one_out",
  "batch_mean",
  "gae",
  "none",
] as const;

export const advantagesSchema = z
  .strictObject({
    estimator: z
      .enum(advantageEstimators, {
        error: (issue) =>
          issue.input === undefined
            ? `\`estimator\` has no default: choose ${advantageEstimators.join(", ")}`
            : undefined,
      })
      .describe(
        "group_normalized (R−mean)/(std+1e-6), group_mean R−mean, leave_one_out R−mean of the others, batch_mean R−mean of the batch, gae with a critic, none the score itself.",
      ),
    clip: z.number().positive().optional().describe("Advantages are cut to ± this."),
    dropZero: z
      .boolean()
      .default(false)
      .describe("Trajectories whose every advantage is 0 leave the batch, denominators included."),
    minimal: z
      .number()
      .positive()
      .optional()
      .describe("Trajectories whose every |advantage| is below this leave the batch, denominators included."),
    gamma: z.number().min(0).max(1).optional().describe("gae: discount of later reward. No default."),
    lambda: z.number().min(0).max(1).optional().describe("gae: decay of the temporal differences. No default."),
    whiten: z
      .boolean()
      .default(false)
      .describe("gae: advantages of the batch get mean 0 and variance 1, over its trainable tokens."),
  })
  .superRefine((config, context) => {
    if (config.estimator !== "gae") return;
    for (const key of ["gamma", "lambda"] as const) {
      if (config[key] === undefined) {
        context.addIssue({
          code: "custom",
          path: [key],
          message: `\`${key}\` has no default and estimator gae needs it`,
        });
      }
    }
  });

/** With every default filled in. */
export type AdvantagesConfig = z.infer<typeof advantagesSchema>;
/** As a recipe writes it. */
export type AdvantagesInput = z.input<typeof advantagesSchema>;
export type AdvantageEstimator = AdvantagesConfig["estimator"];

/**
 * Parses an advantages block and fills in its defaults.
 * @throws ADVANTAGES_KEY_MISSING or ADVANTAGES_INVALID, `at.key` naming the key
 */
export function parseAdvantages(input: unknown): AdvantagesConfig {
  const parsed = advantagesSchema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw configError("advantages", input, parsed.error, {
    missing: "ADVANTAGES_KEY_MISSING",
    invalid: "ADVANTAGES_INVALID",
  });
}
