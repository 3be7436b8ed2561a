// The sections of recipe.yaml that say how the loop runs: sampling, training, evaluation. One optimizer window samples
// tasksPerStep × stepsPerWindow groups and takes stepsPerWindow × epochsPerWindow optimizer steps with them.
import { z } from "zod";

const seconds = z.number().positive().max(604800);

export const samplingSchema = z
  .strictObject({
    tasksPerStep: z.int().min(1).default(8).describe("Tasks (groups) that one optimizer step consumes."),
    groupSize: z.int().min(1).default(8).describe("Rollouts of each task: the group its advantages are compared in."),
    maxNewTokens: z.int().min(1).default(256).describe("Most tokens one call may sample."),
    maxTurns: z
      .int()
      .min(1)
      .nullable()
      .default(null)
      .describe("Most calls one rollout may make; one more fails the record with a code. null = no limit."),
    temperature: z
      .number()
      .positive()
      .max(100)
      .default(1)
      .describe("Sampling temperature; above 0, because greedy tokens are not trained."),
    topP: z
      .number()
      .gt(0)
      .max(1)
      .default(1)
      .describe("Keep the smallest set of tokens with this probability; 1 = off."),
    topK: z.int().min(0).default(0).describe("Keep this many tokens; 0 = off."),
    minP: z.number().min(0).lt(1).default(0).describe("Drop tokens below this fraction of the best one; 0 = off."),
    stop: z.array(z.string().min(1)).default([]).describe("Strings that end a call; an agent's own are added to them."),
    concurrency: z
      .int()
      .min(1)
      .max(65536)
      .nullable()
      .default(null)
      .describe("Rollouts in flight at once; null = all of a window."),
    rolloutTimeout: seconds.default(600).describe("Seconds until a rollout is given up and its record failed."),
    startTimeout: seconds
      .nullable()
      .default(null)
      .describe("Seconds until a rollout must have made its first call; null = no limit of its own."),
    callGapTimeout: seconds
      .nullable()
      .default(null)
      .describe("Seconds a rollout may spend between the end of one call and the next; null = no limit of its own."),
    groupDeadline: seconds
      .nullable()
      .default(null)
      .describe(
        "Seconds after a group's first rollout began when the group is decided with the rollouts that are graded by then; null = all are waited for.",
      ),
    evaluateTimeout: seconds.default(60).describe("Seconds until evaluate is given up and its record left ungraded."),
    retries: z
      .int()
      .min(0)
      .max(100)
      .default(1)
      .describe("How often a failed or timed-out rollout is tried again before it is dropped and counted."),
    minGroupSize: z
      .int()
      .min(1)
      .nullable()
      .default(null)
      .describe(
        "Graded rollouts a group needs to be trained on; fewer drop the group. null = 2, or 1 when groupSize is 1.",
      ),
    refill: z
      .strictObject({
        limit: z
          .int()
          .min(0)
          .max(1000)
          .default(0)
          .describe(
            "Most extra groups an optimizer step may sample in place of groups whose scores are all equal (DAPO); 0 = such groups stay.",
          ),
      })
      .prefault({})
      .describe("Replacement of groups without variance."),
    truncated: z
      .enum(["mask", "keep"])
      .default("keep")
      .describe(
        "Calls cut off by maxNewTokens. mask: their tokens are not trained and leave the denominators; keep: trained as scored.",
      ),
  })
  .prefault({})
  .describe("How trajectories are sampled for training.");

const scheduleSchema = z
  .strictObject({
    kind: z
      .enum(["constant", "linear", "cosine"])
      .default("constant")
      .describe("Shape after warm-up; linear and cosine fall to finalFraction of lr at the last step."),
    warmupSteps: z.int().min(0).default(0).describe("Steps over which the rate rises linearly to lr."),
    finalFraction: z
      .number()
      .min(0)
      .max(1)
      .default(0)
      .describe("Fraction of lr at the last step; read by linear and cosine only."),
  })
  .prefault({})
  .describe("Learning-rate schedule, by optimizer step.");

export const trainingSchema = z
  .strictObject({
    steps: z.int().min(1).default(40).describe("Optimizer steps of the run."),
    seed: z.int().min(0).default(0).describe("Seed of everything random: sampling, data order, held-out choice."),
    lr: z.number().min(0).default(1e-6).describe("Learning rate of AdamW after warm-up; a critic has the same."),
    schedule: scheduleSchema,
    betas: z
      .tuple([z.number().min(0).lt(1), z.number().min(0).lt(1)])
      .default([0.9, 0.999])
      .describe("Decay rates of AdamW's two moments."),
    eps: z.number().positive().default(1e-8).describe("Added to AdamW's denominator."),
    weightDecay: z.number().min(0).default(0).describe("Decoupled weight decay."),
    decayed: z
      .enum(["matrices", "all"])
      .default("matrices")
      .describe("Tensors that decay: those with two or more axes, or all. Read when weightDecay is above 0."),
    maxGradNorm: z
      .number()
      .positive()
      .nullable()
      .default(1)
      .describe("Global gradient norm to clip to; null = no clipping."),
    tokenBudget: z.int().min(1).default(4096).describe("Most tokens in one micro-batch; never exceeded."),
    packing: z
      .enum(["tree", "rows"])
      .default("tree")
      .describe(
        "tree: trajectories share the computation of equal prefixes; rows: each trajectory is computed by itself.",
      ),
    stepsPerWindow: z
      .int()
      .min(1)
      .default(1)
      .describe("Optimizer steps into which the records of one window are divided; all share one `old`."),
    epochsPerWindow: z.int().min(1).default(1).describe("Passes over the records of one window."),
    mismatchLimit: z
      .number()
      .positive()
      .nullable()
      .default(1e-4)
      .describe(
        "Mean |trainer − sampler| log-probability, measured before the first update, above which the run stops with an explanation; null = never.",
      ),
    checkpoint: z
      .strictObject({
        every: z
          .int()
          .min(1)
          .nullable()
          .default(10)
          .describe("Optimizer steps between checkpoints; the last step always writes one. null = only the last."),
        keepLast: z.int().min(1).default(2).describe("Whole checkpoints that are kept; older ones are deleted."),
      })
      .prefault({})
      .describe("Whole-or-nothing checkpoints, from which a run resumes."),
  })
  .prefault({})
  .describe("How the weights are updated.");

export const evaluationSchema = z
  .strictObject({
    everySteps: z
      .int()
      .min(1)
      .nullable()
      .default(10)
      .describe("Optimizer steps between evaluations; null = none between."),
    atStart: z.boolean().default(true).describe("Evaluate the base weights before the first step."),
    atEnd: z.boolean().default(true).describe("Evaluate after the last step."),
    tasks: z.int().min(1).nullable().default(null).describe("Use only the first held-out tasks; null = all."),
    temperature: z.number().min(0).max(100).default(0).describe("Sampling temperature of evaluation; 0 = greedy."),
    maxNewTokens: z
      .int()
      .min(1)
      .nullable()
      .default(null)
      .describe("Most tokens one call may sample in evaluation; null = sampling.maxNewTokens."),
  })
  .prefault({})
  .describe(
    "Evaluation on the held-out split. Other sampling settings are those of `sampling`, without top-p, top-k and min-p.",
  );
