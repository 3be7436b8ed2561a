// The names of a step's metrics, with unit and meaning: the one list that the loop writes by and views read by. Everything but
// `timings` is the same for two runs with one seed.

export interface MetricDefinition {
  /** "" for a plain number. */
  readonly unit: "" | "nats" | "tokens" | "fraction" | "ms" | "tokens/s";
  readonly description: string;
}

/** Written with a step. Pooled by token count over micro-batches and replicas. A metric whose numbers a step lacks is absent. */
export const stepMetricDefinitions = {
  loss: { unit: "", description: "What was minimised: policy loss, KL, entropy and value parts together." },
  policy_loss: { unit: "", description: "Policy objective after corrections and aggregation." },
  kl_loss: { unit: "nats", description: "KL term in the loss, before its coefficient." },
  entropy_term: { unit: "", description: "Entropy term in the loss, before its coefficient." },
  value_loss: { unit: "", description: "Critic's loss, token mean, before its coefficient." },
  entropy: { unit: "nats", description: "Mean entropy of the policy at the trainable tokens." },
  entropy_min: { unit: "nats", description: "Lowest entropy at a trainable token." },
  entropy_max: { unit: "nats", description: "Highest entropy at a trainable token." },
  kl_k1: { unit: "nats", description: "KL to the reference, estimator k1." },
  kl_k2: { unit: "nats", description: "KL to the reference, estimator k2." },
  kl_k3: { unit: "nats", description: "KL to the reference, estimator k3." },
  kl_old_k1: { unit: "nats", description: "KL to the policy when the window began, estimator k1." },
  kl_old_k2: { unit: "nats", description: "KL to the policy when the window began, estimator k2." },
  kl_old_k3: { unit: "nats", description: "KL to the policy when the window began, estimator k3." },
  ratio_mean: { unit: "", description: "Mean probability ratio of the objective." },
  ratio_min: { unit: "", description: "Smallest probability ratio." },
  ratio_max: { unit: "", description: "Largest probability ratio." },
  clip_fraction: { unit: "fraction", description: "Tokens whose gradient or weight a bound cut." },
  clip_fraction_low: { unit: "fraction", description: "Tokens cut by the lower bound." },
  clip_fraction_high: { unit: "fraction", description: "Tokens cut by the upper bound." },
  clip_fraction_dual: { unit: "fraction", description: "Tokens cut by the dual clip." },
  value_clip_fraction: { unit: "fraction", description: "Tokens whose value moved further than its clip." },
  correction_kept_fraction: { unit: "fraction", description: "Tokens that no correction filtered." },
  correction_weight_mean: { unit: "", description: "Mean product of the corrections' weights." },
  correction_truncated_fraction: { unit: "fraction", description: "Tokens whose weight tokenTruncate cut." },
  correction_token_mask_kept: { unit: "fraction", description: "Tokens that tokenMask kept." },
  correction_sequence_mask_kept: { unit: "fraction", description: "Tokens that sequenceMask kept." },
  correction_token_veto_kept: { unit: "fraction", description: "Tokens that tokenVeto kept." },
  correction_freshness_kept: { unit: "fraction", description: "Tokens that freshness kept." },
  grad_norm: { unit: "", description: "Global norm of the gradient before clipping." },
  critic_grad_norm: { unit: "", description: "The same of a critic with weights of its own." },
  lr: { unit: "", description: "Learning rate of the step." },
  reward_mean: { unit: "", description: "Mean score of the graded records." },
  reward_std: { unit: "", description: "Standard deviation of those scores (n − 1)." },
  reward_min: { unit: "", description: "Lowest score." },
  reward_max: { unit: "", description: "Highest score." },
  advantage_mean: { unit: "", description: "Mean advantage of the trainable tokens." },
  advantage_min: { unit: "", description: "Lowest advantage." },
  advantage_max: { unit: "", description: "Highest advantage." },
  staleness_mean: { unit: "", description: "Mean optimizer steps between sampling and training." },
  staleness_max: { unit: "", description: "Most optimizer steps between sampling and training." },
  records: { unit: "", description: "Records that the step consumed." },
  trajectories: { unit: "", description: "Trajectories that were trained." },
  units: { unit: "", description: "Units of the aggregation (trajectories or turns) with trainable tokens." },
  groups: { unit: "", description: "Groups with a graded record." },
  zero_variance_groups: { unit: "", description: "Groups whose every advantage is 0: they teach nothing." },
  ungraded: { unit: "", description: "Records without a score; they are not trained." },
  dropped: { unit: "", description: "Records that left the batch because their advantages are 0 or minimal." },
  truncated: { unit: "", description: "Records with a call cut off by its token limit." },
  tokens_sampled: { unit: "tokens", description: "Tokens that the consumed records' calls sampled." },
  tokens_trainable: { unit: "tokens", description: "Tokens that were trained." },
  tokens_flat: { unit: "tokens", description: "Tokens if each trajectory were computed by itself." },
  tokens_packed: { unit: "tokens", description: "Tokens that were computed." },
  token_ratio: { unit: "", description: "Flat tokens per packed token: what sharing equal prefixes saves." },
  micro_batches: { unit: "", description: "Micro-batches that the step was cut into." },
  mismatch_tokens: { unit: "tokens", description: "Tokens sampled by the very version that was trained." },
  mismatch_k1: {
    unit: "nats",
    description: "Trainer against sampler at those tokens: mean(−d), d = trainer − sampler.",
  },
  mismatch_k3: { unit: "nats", description: "Likewise, mean(exp(d) − 1 − d)." },
  mismatch_abs_mean: { unit: "nats", description: "Mean |d|." },
  mismatch_abs_max: { unit: "nats", description: "Largest |d|." },
  mismatch_prob_abs_mean: { unit: "", description: "Mean |difference of probabilities|." },
  mismatch_ratio_min: { unit: "", description: "Smallest exp(d)." },
  mismatch_ratio_max: { unit: "", description: "Largest exp(d)." },
  mismatch_ratio_outside: { unit: "fraction", description: "Tokens with exp(d) outside [0.9, 1.1]." },
  mismatch_p1: { unit: "nats", description: "First percentile of d." },
  mismatch_p50: { unit: "nats", description: "Median of d." },
  mismatch_p99: { unit: "nats", description: "99th percentile of d." },
  mismatch_ess: { unit: "fraction", description: "Effective sample size of the trajectories' weights, as a fraction." },
  skipped: { unit: "", description: "1 where the step left the weights as they were, else 0." },
} as const satisfies Record<string, MetricDefinition>;

export type StepMetricName = keyof typeof stepMetricDefinitions;
export type StepMetrics = { [Name in StepMetricName]?: number };

/** Wall times of a step and what is computed from them: never the same twice. */
export const stepTimingDefinitions = {
  time_packing: { unit: "ms", description: "Building the prefix tree and the micro-batches." },
  time_old: { unit: "ms", description: "Forward for the log-probabilities at the beginning of the window." },
  time_reference: { unit: "ms", description: "Forward of the reference." },
  time_value: { unit: "ms", description: "Forward for the values at the beginning of the window." },
  time_statistics: { unit: "ms", description: "First pass of objectives whose statistics span micro-batches." },
  time_accumulate: { unit: "ms", description: "Forward and backward." },
  time_optimizer: { unit: "ms", description: "Gradient norm and optimizer step." },
  time_step: { unit: "ms", description: "The whole step; forwards of the window are counted in its first step." },
  tokens_per_second: { unit: "tokens/s", description: "Packed tokens per second of the whole step." },
  flat_tokens_per_second: { unit: "tokens/s", description: "Flat tokens per second of the whole step." },
} as const satisfies Record<string, MetricDefinition>;

export type StepTimingName = keyof typeof stepTimingDefinitions;
export type StepTimings = { [Name in StepTimingName]?: number };
