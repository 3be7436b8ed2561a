// How values of the seed stacks' knobs become values of ours, where they are not the same. A string instead of values is the reason
// why this value has no counterpart.
import type { SeedStack } from "../../../protocol/seedKnobs.ts";

type Read = (knob: string) => unknown;
type Convert = (value: unknown, read: Read) => Readonly<Record<string, unknown>> | string;

const none = {};
const number = (value: unknown, otherwise: number): number => (typeof value === "number" ? value : otherwise);

/** Sets the key unless the value means "off". */
const unless =
  (key: string, ...off: readonly unknown[]): Convert =>
  (value) =>
    off.includes(value) ? none : { [key]: value };

const choice =
  (key: string, names: Readonly<Record<string, string>>): Convert =>
  (value) => {
    const name = Object.hasOwn(names, String(value)) ? names[String(value)] : undefined;
    return name === undefined ? `there is no counterpart of ${String(value)} in ${key}` : { [key]: name };
  };

const schedules = choice("training.schedule.kind", {
  constant: "constant",
  constant_with_warmup: "constant",
  linear: "linear",
  cosine: "cosine",
});

const betas =
  (first: string, second: string): Convert =>
  (_value, read) => ({ "training.betas": [number(read(first), 0.9), number(read(second), 0.999)] });

const agentrlAggregation: Convert = (_value, read) => {
  if (read("token_level_loss") !== false) return { "objective.aggregation": "token-mean" };
  if (read("skip_length_normalization") !== true) return { "objective.aggregation": "sequence-mean" };
  return { "objective.aggregation": "sequence-sum", "objective.lengthNormalizer": 1 };
};

const agentrlFreshness: Convert = (_value, read) => {
  const isStrict = read("strict_in_bound") === true;
  const decay = read("out_of_date_decay");
  if (!isStrict && typeof decay !== "number") return none;
  return {
    "objective.correction.freshness.decay": isStrict ? 0 : decay,
    "objective.correction.freshness.capRatio": isStrict ? 1 : number(read("importance_weight_cap_ratio"), 4),
  };
};

const tasksOfBatch: Convert = (value, read) => ({
  "sampling.tasksPerStep": Math.max(
    1,
    Math.round(number(value, 32) / number(read("online_rl_train.num_rollouts_per_conversation"), 8)),
  ),
});

const finalFraction =
  (lr: string): Convert =>
  (value, read) => {
    const peak = number(read(lr), 0);
    return peak > 0 ? { "training.schedule.finalFraction": Math.min(1, number(value, 0) / peak) } : none;
  };

const interval =
  (key: string, low: string, high: string, widest: number): Convert =>
  (_value, read) => {
    const [from, to] = [read(low), read(high)];
    return from == null && to == null ? none : { [key]: [number(from, 0), number(to, widest)] };
  };

const kl: Convert = (_value, read) => {
  const coef = number(read("grpo.kl_control_alpha"), 0);
  if (coef === 0) return none;
  return {
    "objective.kl.coef": coef,
    "objective.kl.estimator": "k2",
    "objective.kl.base": read("grpo.kl_base_logprobs") === "ref_logprobs" ? "ref" : "old",
  };
};

const entropy: Convert = (_value, read) => {
  const coef = number(read("grpo.entropy_control.alpha"), 0);
  return coef === 0
    ? none
    : {
        "objective.entropy.coef": coef,
        "objective.entropy.target": number(read("grpo.entropy_control.target_entropy"), 0.1),
      };
};

const critic =
  (key: string): Convert =>
  (value, read) => ({
    "advantages.estimator": "gae",
    "advantages.gamma": number(read("grpo.ppo_value.gamma"), 1),
    "advantages.lambda": number(read("grpo.ppo_value.gae_lambda"), 1),
    "objective.value.coef": number(read("grpo.ppo_value.value_loss_coef"), 1),
    ...(value === null ? {} : { [key]: value }),
  });

/** By stack and path of the knob; a knob that is not here keeps its value. */
export const seedValues: Readonly<Record<SeedStack, Readonly<Record<string, Convert>>>> = {
  agentrl: {
    db_connection_string: () => "a run keeps its records in a file of its own",
    torch_dtype: (value) =>
      value === "float32"
        ? { "engine.dtype": "f32" }
        : "the embedded engine computes in single precision (engine.dtype f32)",
    dynamic_batching: () => ({ "training.packing": "tree" }),
    epsilon_higher: (value, read) => ({
      "objective.clipHigh": round(number(read("epsilon"), 0.2) + number(value, 0.1)),
    }),
    token_level_loss: agentrlAggregation,
    skip_length_normalization: agentrlAggregation,
    out_of_date_decay: agentrlFreshness,
    importance_weight_cap_ratio: agentrlFreshness,
    strict_in_bound: agentrlFreshness,
    loss_calculater: choice("objective.kind", {
      GRPO: "grpo",
      GSPO: "gspo",
      MINIRL: "minirl",
      CrossEntropy: "cross_entropy",
    }),
    minimal_advantage: (value) => (typeof value === "number" && value > 0 ? { "advantages.minimal": value } : none),
    target_concurrency: (_value, read) =>
      read("max_concurrent_samples_per_process") === undefined
        ? "requests of an engine are not rollouts; set sampling.concurrency"
        : none,
    resample_error_records: (value) => ({ "sampling.retries": value === true ? 1 : 0 }),
    preferred_sampling_params: (value) => {
      const given = asMap(value);
      if (given === null) return "it is not a JSON text";
      const names = { temperature: "temperature", top_p: "topP", top_k: "topK", min_p: "minP" };
      return Object.fromEntries(
        Object.entries(names)
          .filter(([theirs]) => given[theirs] !== undefined)
          .map(([theirs, ours]) => [
            `sampling.${ours}`,
            theirs === "top_k" ? Math.max(0, number(given[theirs], 0)) : given[theirs],
          ]),
      );
    },
    eval_strategy: (value) => (value === "no" ? { "evaluation.everySteps": null } : none),
    lr_scheduler_type: schedules,
    adam_beta1: betas("adam_beta1", "adam_beta2"),
    adam_beta2: betas("adam_beta1", "adam_beta2"),
    max_grad_norm: (value) => ({ "training.maxGradNorm": value === 0 ? null : value }),
  },
  axisrl: {
    "controller.allow_prefix_merging": (value) => ({ "training.packing": value === false ? "rows" : "tree" }),
    "controller.smoke_eval_rollouts": unless("evaluation.tasks", null),
    "train_datasets.data_path": unless("data.train", null),
    "test_datasets.data_path": unless("data.heldOut", null),
    "train_sampling_config.top_k": (value) => ({ "sampling.topK": Math.max(0, number(value, 0)) }),
    "train_sampling_config.max_total_tokens": (value, read) =>
      number(value, 0) > 0
        ? { "training.tokenBudget": value }
        : { "training.tokenBudget": number(read("megatron_worker.model.seq_length"), 2048) },
    "train_sampling_config.max_new_tokens": unless("sampling.maxNewTokens", null),
    "train_sampling_config.stop": (value) =>
      value === null ? none : { "sampling.stop": typeof value === "string" ? [value] : value },
    "eval_sampling_config.stop": (value) =>
      value === null ? none : { "sampling.stop": typeof value === "string" ? [value] : value },
    "eval_sampling_config.max_new_tokens": unless("evaluation.maxNewTokens", null),
    "eval_sampling_config.max_total_tokens": () => "it counts the prompt too; set evaluation.maxNewTokens",
    "online_rl_train.strict_on_policy": (value) => (value === true ? { "training.stepsPerWindow": 1 } : none),
    "online_rl_train.reward_mean_type": () => ({ "advantages.estimator": "group_normalized" }),
    "online_rl_train.reward_std_type": () => ({ "advantages.estimator": "group_normalized" }),
    "online_rl_train.filter_zero_std": (value) => (value === true ? { "sampling.refill.limit": 16 } : none),
    "grpo.loss_type": choice("objective.kind", {
      grpo: "grpo",
      ppo: "ppo",
      tis: "tis",
      gspo: "gspo",
      grpo2: "grpo2",
      topr: "topr",
      kimi2_5: "kimi",
    }),
    "grpo.dual_clip_neg_adv_factor": unless("objective.dualClip", null),
    "grpo.dual_soft_clip": unless("objective.softClip", null),
    "grpo.loss_agg_type": choice("objective.aggregation", {
      "token-mean": "token-mean",
      "seq-mean-token-mean": "sequence-mean",
    }),
    "grpo.entropy_control.alpha": entropy,
    "grpo.entropy_control.target_entropy": entropy,
    "grpo.kl_control_alpha": kl,
    "grpo.kl_base_logprobs": kl,
    "grpo.is_base_logprobs": choice("objective.ratioBase", { old_logprobs: "old", rollout_logprobs: "rollout" }),
    "grpo.mismatch_token_clip_max": unless("objective.correction.tokenTruncate", null),
    "grpo.mismatch_token_veto_threshold": unless("objective.correction.tokenVeto", null),
    "grpo.mismatch_seq_masking_low": interval(
      "objective.correction.sequenceMask",
      "grpo.mismatch_seq_masking_low",
      "grpo.mismatch_seq_masking_high",
      1e9,
    ),
    "grpo.mismatch_seq_masking_high": interval(
      "objective.correction.sequenceMask",
      "grpo.mismatch_seq_masking_low",
      "grpo.mismatch_seq_masking_high",
      1e9,
    ),
    "grpo.icepop_masking_low": interval(
      "objective.correction.tokenMask",
      "grpo.icepop_masking_low",
      "grpo.icepop_masking_high",
      1e9,
    ),
    "grpo.icepop_masking_high": interval(
      "objective.correction.tokenMask",
      "grpo.icepop_masking_low",
      "grpo.icepop_masking_high",
      1e9,
    ),
    "grpo.ppo_value.gamma": critic("advantages.gamma"),
    "grpo.ppo_value.gae_lambda": critic("advantages.lambda"),
    "grpo.ppo_value.value_clip": critic("objective.value.clip"),
    "grpo.ppo_value.value_loss_coef": critic("objective.value.coef"),
    "megatron_worker.global_batch_size": tasksOfBatch,
    "megatron_worker.use_dynamic_batch_size": () => none,
    "megatron_worker.optimizer.min_lr": finalFraction("megatron_worker.optimizer.lr"),
    "megatron_worker.optimizer.adam_beta1": betas(
      "megatron_worker.optimizer.adam_beta1",
      "megatron_worker.optimizer.adam_beta2",
    ),
    "megatron_worker.optimizer.adam_beta2": betas(
      "megatron_worker.optimizer.adam_beta1",
      "megatron_worker.optimizer.adam_beta2",
    ),
    "megatron_worker.optimizer.clip_grad": (value) => ({ "training.maxGradNorm": value === 0 ? null : value }),
    "megatron_worker.lr_scheduler.min_lr": finalFraction("megatron_worker.lr_scheduler.max_lr"),
    "megatron_worker.lr_scheduler.lr_decay_steps": () => "the schedule ends with training.steps",
    "megatron_worker.lr_scheduler.lr_decay_style": schedules,
    "megatron_worker.enable_fp32_lm_head": () => none,
    "megatron_worker.use_magi_merged_forward": (value) => ({ "training.packing": value === false ? "rows" : "tree" }),
    "megatron_worker.shuffle_train_data": (value) => ({ "data.order": value === true ? "shuffled" : "file" }),
    "rollout_worker.engine_type": () => "the embedded engine samples too; inference servers come with part 8",
    "rollout_worker.gpu_memory_utilization": () => "it is a fraction of a GPU; set engine.memoryLimitGb",
    "rollout_worker.sampling_config": () => "train_sampling_config says the same",
    "rollout_worker.enable_fp32_lm_head": () => none,
    "rollout_worker.dtype": (value) =>
      value === "float32"
        ? { "engine.dtype": "f32" }
        : "the embedded engine computes in single precision (engine.dtype f32)",
  },
};

/** Sums of decimal fractions without their binary dust. */
function round(value: number): number {
  return Number(value.toPrecision(12));
}

function asMap(value: unknown): Record<string, unknown> | null {
  const parsed = typeof value === "string" ? parseJson(value) : value;
  return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)
    ? (parsed as Record<string, unknown>)
    : null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Values that a file means without saying so, where ours would be another. */
export const seedDefaults: Readonly<Record<SeedStack, Readonly<Record<string, unknown>>>> = {
  agentrl: {
    loss_calculater: "GRPO",
    token_level_loss: true,
    epsilon: 0.2,
    epsilon_higher: 0.1,
    drop_zero_advantage: true,
    learning_rate: 1e-6,
    num_generations: 8,
    max_new_tokens: 8196,
    max_tokens: 65536,
  },
  axisrl: {
    "grpo.loss_type": "grpo2",
    "grpo.clip_ratio_low": 0.2,
    "grpo.clip_ratio_high": 0.28,
    "grpo.dual_clip_neg_adv_factor": 3,
    "grpo.dual_soft_clip": 3,
    "grpo.loss_agg_type": "token-mean",
    "online_rl_train.num_rollouts_per_conversation": 8,
    "online_rl_train.batch_rollout_for_n_global_updates": 4,
    "online_rl_train.max_global_updates": 4000,
    "online_rl_train.checkpoint_every_n_global_updates": 1024,
    "online_rl_train.eval_every_n_global_updates": 16,
    "megatron_worker.model.name": "Qwen/Qwen3-0.6B-Base",
    "megatron_worker.seed": 42,
    "megatron_worker.global_batch_size": 32,
    "megatron_worker.optimizer.lr": 1e-5,
    "megatron_worker.optimizer.weight_decay": 0.01,
    "megatron_worker.lr_scheduler.lr_warmup_steps": 100,
    "train_sampling_config.max_total_tokens": 4096,
  },
};
