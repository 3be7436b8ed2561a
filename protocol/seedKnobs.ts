// What every knob of AgentRL and AxisRL is called here: our key, or why there is none, or when it comes. Editors, `check`, docs/KNOBS.md
// and the translation of their configuration files read this one table. Values are converted in agent-daemon/src/recipes/translate.

export const seedStacks = { agentrl: "AgentRL", axisrl: "AxisRL" } as const;
export type SeedStack = keyof typeof seedStacks;

/** Parts of Rollscope that are not there yet, by number. */
export const laterParts = {
  5: "asynchronous sampling, exact replay and forced routing",
  6: "tools, judges, teachers and agents as black boxes",
  7: "training on many GPUs (torch, Megatron)",
  8: "inference servers (SGLang, vLLM)",
  9: "clusters: Slurm, Ray, MongoDB, MinIO, other experiment trackers",
} as const;
export type LaterPart = keyof typeof laterParts;

export type Counterpart =
  /** Our key; `note` says how the value or the meaning differs. */
  | { readonly kind: "key"; readonly key: string; readonly note: string | null }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "later"; readonly part: LaterPart };

export interface SeedKnob {
  readonly stack: SeedStack;
  /** Dotted path in a configuration of that stack. It stands for everything below it too. */
  readonly path: string;
  readonly counterpart: Counterpart;
}

type Row = readonly [knobs: string, counterpart: Counterpart];

const here = (key: string, note: string | null = null): Counterpart => ({ kind: "key", key, note });
const refused = (reason: string): Counterpart => ({ kind: "refused", reason });
const later = (part: LaterPart): Counterpart => ({ kind: "later", part });

const unread = refused("nothing reads it there either");
const allReported = refused("always measured and reported");
const inCode = refused("it is a line of the recipe's own code (recipe.ts)");
const engineDecides = refused("the engine plans it from model, memory and threads");
const alwaysOn = refused("always so");
const packingHere = refused("micro-batches are packed up to training.tokenBudget, never padded");

const agentrl: readonly Row[] = [
  ["trainer", refused("the model's own configuration says what it is")],
  ["train_file", here("data.train", "JSONL, one task a line")],
  ["max_pixels tune_vision", later(7)],
  ["remove_experience skip_non_positive_advantage top_k", unread],
  ["oss_connection_string enable_oss", refused("nothing reads it there either; large columns are files of the run")],
  [
    "drop_zero_advantage",
    here("advantages.dropZero", "there single turns are dropped, here trajectories whose every advantage is 0"),
  ],
  ["shift_labels", refused("index i is always about predicting token i")],
  ["db_connection_string", here("store.records.kind", "sqlite: a file in the run's folder, without a server")],
  ["model_name_or_path", here("model.source")],
  ["attention_implementation", engineDecides],
  ["output_router_logits", refused("the auxiliary loss is not added there either")],
  ["trust_remote_code", refused("code of a model repository is never run")],
  ["cpu_ram_efficient_loading", refused("weights are always loaded")],
  ["torch_dtype", here("engine.dtype", "f32: weights and products in single precision")],
  ["tp_size pp_size ep_size cp_size", later(7)],
  ["pad_to_multiple_of pad_to_maximum", packingHere],
  ["bypass_causal_mask_check", refused("attention is always causal along a path")],
  ["enable_loss_parallel activation_offloading", later(7)],
  ["loss_seq_chunk_size", engineDecides],
  ["decoder_sparse_step", refused("the model's own configuration says what it is")],
  ["remove_unused_columns", refused("a task keeps every field of its row")],
  ["dynamic_batching", here("training.packing", "tree or rows; both fill micro-batches up to training.tokenBudget")],
  ["learning_rate", here("training.lr")],
  ["epsilon", here("objective.clipLow")],
  ["epsilon_higher", here("objective.clipHigh", "there an increment on epsilon: clipHigh = epsilon + epsilon_higher")],
  ["beta1 beta2", refused("these terms have no gradient; objective.kind cispo or grpo2 keeps one outside the bounds")],
  [
    "adv_scaling",
    refused("AdamW and gradient clipping undo a constant factor; scale in evaluate, or change training.lr"),
  ],
  ["max_tokens", here("training.tokenBudget", "tokens of a micro-batch; longer trajectories are refused, not cut")],
  ["balance_sample efficient_rewarding", refused("what a group is worth is said by evaluate and advantages")],
  ["token_level_loss", here("objective.aggregation", "true: token-mean over the whole batch; false: sequence-mean")],
  ["out_of_date_decay", here("objective.correction.freshness.decay")],
  ["importance_weight_cap_ratio", here("objective.correction.freshness.capRatio")],
  ["strict_in_bound", here("objective.correction.freshness.capRatio", "true is capRatio 1 with decay 0")],
  ["log_entropy", allReported],
  ["skip_length_normalization", here("objective.aggregation", "true: sequence-sum with a lengthNormalizer")],
  ["loss_calculater", here("objective.kind", "GRPO, GSPO, MINIRL, CrossEntropy: grpo, gspo, minirl, cross_entropy")],
  ["max_trained_count", here("training.epochsPerWindow", "there a count of conversions of one record")],
  ["retrained_interval", later(5)],
  [
    "minimal_advantage",
    here("advantages.minimal", "there single turns by signed value, here trajectories by |advantage|"),
  ],
  ["enable_sampling", refused("a run samples its own tasks; recorded trajectories are imported")],
  ["sync_sampling", refused("a window is always whole before it is trained on; other ways come with part 5")],
  ["max_new_tokens", here("sampling.maxNewTokens")],
  ["max_prompt_tokens", later(6)],
  ["num_generations", here("sampling.groupSize")],
  ["tool_call_parser", later(6)],
  ["model_name", refused("an agent reaches the policy under any name")],
  ["inf_tp_size inf_ep_size inf_mem_ratio", later(8)],
  ["max_concurrent_samples_per_process", here("sampling.concurrency", "of the whole run")],
  ["target_concurrency", here("sampling.concurrency", "rollouts in flight; there requests of an engine")],
  [
    "presence_penalty frequency_penalty",
    refused("a penalty makes the sampled distribution one that no trainer can reproduce"),
  ],
  ["preferred_sampling_params", here("sampling.temperature", "one JSON text there; also sampling.topP, topK, minP")],
  ["resample_error_records", here("sampling.retries", "how often a failed rollout is tried again")],
  ["mcp_server_name mcp_manager_url mcp_auth_token", later(6)],
  ["max_turns", here("sampling.maxTurns")],
  ["min_turns reserve_context_error_count", inCode],
  ["repetition_early_stop_times enable_repetition_compress new_context", inCode],
  ["agent_config_path", later(6)],
  ["max_steps", here("training.steps")],
  ["num_train_epochs", refused("a run ends after training.steps; the order of the tasks begins again by itself")],
  [
    "gradient_accumulation_steps",
    refused(
      "an optimizer step is sampling.tasksPerStep × sampling.groupSize rollouts, however many micro-batches that is",
    ),
  ],
  ["per_device_train_batch_size", packingHere],
  ["dataloader_num_workers dataloader_prefetch_factor", refused("records are read by the step that trains them")],
  ["max_grad_norm", here("training.maxGradNorm")],
  ["save_steps", here("training.checkpoint.every")],
  ["save_only_model", refused("a checkpoint is always whole, so that a run can resume from it")],
  ["save_total_limit", here("training.checkpoint.keepLast")],
  ["eval_strategy", here("evaluation.everySteps", "null for no evaluation between")],
  ["eval_steps", here("evaluation.everySteps")],
  ["report_to", later(9)],
  ["resume_from_checkpoint", refused("`rollscope resume RUN` goes on from its last whole checkpoint")],
  ["seed", here("training.seed")],
  ["weight_decay", here("training.weightDecay")],
  ["adam_beta1 adam_beta2", here("training.betas", "a list of both")],
  ["adam_epsilon", here("training.eps")],
  ["warmup_steps", here("training.schedule.warmupSteps")],
  ["lr_scheduler_type", here("training.schedule.kind", "constant, linear, cosine")],
  ["output_dir", refused("runs are made below --output-dir")],
  ["bf16 fp16", later(7)],
  ["logging_steps", refused("every step is logged")],
  ["run_name", here("name")],
  ["browse_agent", later(6)],
  ["scorer_agent", later(6)],
];

const megatron: readonly Row[] = [
  ["model.name", here("model.source")],
  ["model.trust_remote_code", refused("code of a model repository is never run")],
  ["model.seq_length", here("training.tokenBudget", "the most that one micro-batch holds")],
  ["model_role", refused("policy, reference and critic are what the objective asks for")],
  ["seed", here("training.seed")],
  ["tp_size pp_size dp_size cp_size ep_size vpp_size etp_size", later(7)],
  ["distributed_timeout_seconds use_gloo_process_groups", later(7)],
  ["enable_routing_replay replay_routing_for_loss_tokens_only", later(5)],
  ["fp8 fp8_recipe fp16 bf16", later(7)],
  ["data_loader.num_workers num_dataloader_workers", unread],
  ["padding_sample_length", packingHere],
  ["train_micro_batch_size eval_micro_batch_size", packingHere],
  [
    "global_batch_size",
    here("sampling.tasksPerStep", "there trajectories: tasksPerStep = global_batch_size / group size"),
  ],
  ["use_dynamic_batch_size", here("training.tokenBudget", "always so; the budget is micro-batch size × seq_length")],
  ["num_epochs", refused("a run ends after training.steps; the order of the tasks begins again by itself")],
  ["moe_aux_loss_coeff moe_router_load_balancing_type", later(7)],
  ["recompute_granularity recompute_method recompute_num_layers recompute_modules", later(7)],
  ["cpu_offloading cpu_offloading_num_layers cpu_offloading_double_buffering", later(7)],
  ["log_every_k_steps log_microbatches log_gpu_usaegs", refused("every step is logged, with its phases")],
  ["metric_logger_config", later(9)],
  ["log_level", refused("`rollscope inspect` and the run's journal have everything")],
  ["checkpoint_dir", refused("checkpoints lie in the run's folder")],
  ["checkpoint_step", refused("`rollscope resume RUN` goes on from the last whole checkpoint")],
  ["most_recent_checkpoint_k", here("training.checkpoint.keepLast")],
  ["save_hf_checkpoint", refused("every checkpoint holds the model in Hugging Face form")],
  ["reset_init_weights_every_k_steps", later(5)],
  ["apply_rope_fusion attention_backend", engineDecides],
  [
    "deterministic_mode batch_invariant_mode",
    refused("the embedded engine is always deterministic and batch invariant"),
  ],
  ["use_language_model_only", later(7)],
  ["spike_debug", later(5)],
  ["optimizer.optimizer", refused("AdamW is the one optimizer")],
  ["optimizer.lr", here("training.lr")],
  ["optimizer.min_lr", here("training.schedule.finalFraction", "there a rate, here a fraction of lr")],
  ["optimizer.weight_decay", here("training.weightDecay")],
  ["optimizer.use_distributed_optimizer optimizer.fp16 optimizer.bf16", later(7)],
  ["optimizer.optimizer_cpu_offload optimizer.optimizer_offload_fraction", later(7)],
  ["optimizer.clip_grad", here("training.maxGradNorm")],
  ["optimizer.adam_beta1 optimizer.adam_beta2", here("training.betas", "a list of both")],
  ["optimizer.use_stateless_adam", refused("AdamW keeps its moments")],
  ["lr_scheduler.init_lr", refused("warm-up rises from 0")],
  ["lr_scheduler.max_lr", here("training.lr")],
  ["lr_scheduler.min_lr", here("training.schedule.finalFraction", "there a rate, here a fraction of lr")],
  ["lr_scheduler.lr_warmup_steps", here("training.schedule.warmupSteps")],
  ["lr_scheduler.lr_decay_steps", here("training.steps", "the schedule ends with the run")],
  ["lr_scheduler.lr_decay_style", here("training.schedule.kind", "constant, linear, cosine")],
  ["lr_scheduler.start_wd", here("training.weightDecay")],
  ["lr_scheduler.end_wd lr_scheduler.wd_incr_steps lr_scheduler.wd_incr_style", refused("weight decay is constant")],
  [
    "lr_scheduler.use_checkpoint_opt_param_scheduler lr_scheduler.override_opt_param_scheduler",
    refused("a resumed run keeps the schedule that it was started with"),
  ],
  [
    "lr_scheduler.wsd_decay_steps lr_scheduler.lr_wsd_decay_style",
    refused("the schedules are constant, linear and cosine"),
  ],
  ["inference_only", refused("a run trains; `training.lr: 0` with evaluation only measures")],
  ["shuffle_train_data", here("data.order", "true: shuffled; false: file")],
  ["enable_fp32_lm_head", here("engine.dtype", "f32 throughout")],
  ["use_magi_merged_forward", here("training.packing", "true: tree; false: rows")],
  ["use_magi_flat_forward", unread],
];

const axisrl: readonly Row[] = [
  ["controller.run_mode", refused("`rollscope run` trains online; SFT is objective.kind cross_entropy")],
  ["controller.output_dir_name", here("name", "runs are named after the recipe")],
  ["controller.colocated", later(8)],
  ["controller.num_rollout_actors controller.num_cpus_per_actor", refused("rollouts of one process run side by side")],
  ["controller.max_running_requests", here("sampling.concurrency", "rollouts in flight")],
  ["controller.smoke_eval_rollouts", here("evaluation.tasks")],
  ["controller.save_eval_rollouts", alwaysOn],
  ["controller.allow_prefix_merging", here("training.packing", "true: tree; false: rows")],
  ["eval_only.model", here("model.source")],
  ["replay_rl_train.sample_dict_path replay_rl_train.rollout_groups_path", later(5)],
  ["sft.compute_accuracy", unread],
  ["sft.compute_entropy", allReported],
  ["train_datasets.name test_datasets.name", refused("a task file is named by its path")],
  ["train_datasets.data_path", here("data.train", "JSONL, one task a line; one file")],
  ["test_datasets.data_path", here("data.heldOut", "JSONL, one task a line; one file")],
  ["train_datasets.eval_num_rollouts_per_prompt", unread],
  ["test_datasets.eval_num_rollouts_per_prompt", refused("evaluation asks every held-out task once")],
  ["train_datasets.subset_key test_datasets.subset_key", refused("recordFields with an index are queried by value")],
  ["train_sampling_config.temperature", here("sampling.temperature")],
  ["train_sampling_config.top_p", here("sampling.topP")],
  ["train_sampling_config.top_k", here("sampling.topK", "-1 there is 0 here: off")],
  ["train_sampling_config.min_p", here("sampling.minP")],
  [
    "train_sampling_config.frequency_penalty train_sampling_config.presence_penalty train_sampling_config.repetition_penalty",
    refused("a penalty makes the sampled distribution one that no trainer can reproduce"),
  ],
  [
    "train_sampling_config.max_total_tokens",
    here("training.tokenBudget", "prompt and answer of one trajectory must fit"),
  ],
  ["train_sampling_config.max_new_tokens", here("sampling.maxNewTokens")],
  ["train_sampling_config.stop", here("sampling.stop")],
  ["eval_sampling_config.temperature", here("evaluation.temperature")],
  ["eval_sampling_config.max_new_tokens", here("evaluation.maxNewTokens")],
  ["eval_sampling_config.stop", here("sampling.stop", "one list for both")],
  [
    "eval_sampling_config.top_p eval_sampling_config.top_k eval_sampling_config.min_p eval_sampling_config.frequency_penalty eval_sampling_config.presence_penalty eval_sampling_config.repetition_penalty",
    refused("evaluation samples from the whole distribution"),
  ],
  ["eval_sampling_config.max_total_tokens", here("evaluation.maxNewTokens", "there prompt and answer")],
  ["logger.logger_type logger.group_name logger.project_name logger.run_id", later(9)],
  ["logger.name", here("name")],
  [
    "mismatch_test",
    refused("the mismatch of trainer and sampler is measured in every step; training.mismatchLimit stops on it"),
  ],
  ["online_rl_train.eval_on_start", here("evaluation.atStart")],
  ["online_rl_train.num_rollouts_per_conversation", here("sampling.groupSize")],
  ["online_rl_train.model_sync_every_n_global_updates", here("training.stepsPerWindow")],
  [
    "online_rl_train.batch_rollout_for_n_global_updates",
    here("training.stepsPerWindow", "a window is sampled whole and trained whole"),
  ],
  ["online_rl_train.checkpoint_every_n_global_updates", here("training.checkpoint.every")],
  ["online_rl_train.eval_every_n_global_updates", here("evaluation.everySteps")],
  ["online_rl_train.max_global_updates", here("training.steps")],
  ["online_rl_train.strict_on_policy", here("training.stepsPerWindow", "true is stepsPerWindow 1")],
  [
    "online_rl_train.reward_mean_type online_rl_train.reward_std_type",
    here("advantages.estimator", "group_normalized"),
  ],
  ["online_rl_train.reward_history_size", unread],
  ["online_rl_train.sample_type", refused("tasks come in the order of data.order; equal groups can be refilled")],
  ["online_rl_train.filter_zero_std", here("sampling.refill.limit", "true: a limit above 0")],
  ["online_rl_train.max_prompt_length", later(6)],
  ["online_rl_train.sort_sampled_prompts_by_response_length", unread],
  [
    "online_rl_train.rollout_save_filename online_rl_train.rollout_save_every_n_global_updates online_rl_train.save_all_rollouts",
    refused("every rollout is recorded"),
  ],
  ["grpo.loss_type", here("objective.kind", "grpo, ppo, tis, gspo, grpo2, topr, kimi2_5 (here: kimi)")],
  ["grpo.clip_ratio_high", here("objective.clipHigh")],
  ["grpo.clip_ratio_low", here("objective.clipLow")],
  ["grpo.dual_clip_neg_adv_factor", here("objective.dualClip")],
  ["grpo.dual_soft_clip", here("objective.softClip")],
  ["grpo.log_sample", unread],
  ["grpo.normalize_advantage_by_batch_std", refused("refused there too")],
  ["grpo.loss_agg_type", here("objective.aggregation", "token-mean; seq-mean-token-mean is sequence-mean")],
  ["grpo.micro_batch_denominator_type", refused("the denominator is always that of the whole optimizer batch")],
  ["grpo.entropy_control.target_entropy", here("objective.entropy.target")],
  ["grpo.entropy_control.alpha", here("objective.entropy.coef")],
  ["grpo.entropy_control.compute_entropy", allReported],
  [
    "grpo.entropy_control.top_k grpo.entropy_control.top_quantile",
    refused("the entropy is that of the whole distribution, over all trainable tokens"),
  ],
  ["grpo.entropy_control.easy_score_cutoff grpo.entropy_control.epsilon", unread],
  ["grpo.kl_control_alpha", here("objective.kl.coef", "its estimator is k2")],
  ["grpo.is_base_logprobs", here("objective.ratioBase", "old_logprobs: old; rollout_logprobs: rollout")],
  ["grpo.kl_base_logprobs", here("objective.kl.base", "old_logprobs: old; ref_logprobs: ref")],
  ["grpo.mismatch_token_clip_max", here("objective.correction.tokenTruncate")],
  [
    "grpo.mismatch_seq_masking_low grpo.mismatch_seq_masking_high",
    here("objective.correction.sequenceMask", "a list of both; there against the current log-probability"),
  ],
  ["grpo.mismatch_token_veto_threshold", here("objective.correction.tokenVeto")],
  ["grpo.icepop_masking_low grpo.icepop_masking_high", here("objective.correction.tokenMask", "a list of both")],
  ["grpo.turn_reward_alpha grpo.seq_turn_alpha", refused("objective.unit turn makes a turn the unit of means")],
  ["grpo.normalize_advantages_over_valid_tokens_in_batch", here("advantages.whiten", "read with estimator gae")],
  ["grpo.ppo_value.gamma", here("advantages.gamma")],
  ["grpo.ppo_value.gae_lambda", here("advantages.lambda")],
  ["grpo.ppo_value.value_clip", here("objective.value.clip")],
  ["grpo.ppo_value.value_loss_coef", here("objective.value.coef")],
  ["grpo.ppo_value.num_value_only_updates", refused("critic and policy learn together from the first step")],
  ["grpo.ppo_value.use_stateless_value_model", refused("refused there too")],
  ["grpo.opd", later(6)],
  ...megatron.map(
    ([knobs, counterpart]): Row => [
      knobs
        .split(" ")
        .map((knob) => `megatron_worker.${knob}`)
        .join(" "),
      counterpart,
    ],
  ),
  ["value_worker", refused("on the embedded engine the critic is a value head on the policy, trained at training.lr")],
  ["rollout_worker.name rollout_worker.model", refused("the sampler is the policy itself")],
  ["rollout_worker.sampling_config", here("sampling.temperature", "train_sampling_config says the same")],
  ["rollout_worker.engine_type", here("engine.kind", "embedded")],
  ["rollout_worker.gpu_memory_utilization", here("engine.memoryLimitGb", "there a fraction of GPU memory")],
  ["rollout_worker.dp_size rollout_worker.tp_size rollout_worker.pp_size rollout_worker.ep_size", later(8)],
  ["rollout_worker.moe_a2a_backend rollout_worker.moe_runner_backend rollout_worker.num_workers", later(8)],
  ["rollout_worker.enable_routing_replay", later(5)],
  ["rollout_worker.clear_partial_outputs_after_abort rollout_worker.continue_generation_after_abort", later(5)],
  ["rollout_worker.log_level", refused("`rollscope inspect` and the run's journal have everything")],
  ["rollout_worker.max_running_requests", here("sampling.concurrency", "rollouts in flight")],
  ["rollout_worker.max_running_requests_eval", here("sampling.concurrency", "one limit for both")],
  ["rollout_worker.max_num_batched_tokens", unread],
  ["rollout_worker.load_dummy_weights", refused("weights are always loaded")],
  ["rollout_worker.attention_backend rollout_worker.kv_cache_dtype rollout_worker.prefill_max_requests", engineDecides],
  ["rollout_worker.enable_fp32_lm_head rollout_worker.dtype", here("engine.dtype", "f32 throughout")],
  ["rollout_worker.enable_metrics", alwaysOn],
  ["rollout_worker.master_addr rollout_worker.master_port rollout_worker.nnodes rollout_worker.node_rank", later(9)],
  ["rollout_worker.max_imbalance", later(8)],
  [
    "AXRL_OUTPUT_DIR_NAME AXRL_OUTPUT_DIR AXRL_LOG_DIR",
    refused("runs are made below --output-dir or $ROLLSCOPE_OUTPUT_DIR, with their logs"),
  ],
  ["AXRL_DATA_DIR", refused("data.train names the file")],
  ["AXRL_MODEL_DIR AXRL_STABLE_MODEL_DIR AXRL_SHARED_MODEL_DIR", refused("fetched models lie in $ROLLSCOPE_CACHE")],
  ["RAY_ADDRESS", later(9)],
];

function knobsOf(stack: SeedStack, rows: readonly Row[]): SeedKnob[] {
  return rows.flatMap(([knobs, counterpart]) => knobs.split(" ").map((path) => ({ stack, path, counterpart })));
}

/** Every knob of both stacks. */
export const seedKnobs: readonly SeedKnob[] = [...knobsOf("agentrl", agentrl), ...knobsOf("axisrl", axisrl)];

const byStackAndPath = new Map(seedKnobs.map((knob) => [`${knob.stack} ${knob.path}`, knob]));

/** The knob of a path, or the closest one above it that stands for all below. List positions are left out. */
export function seedKnob(stack: SeedStack, path: readonly string[]): SeedKnob | null {
  const names = path.filter((name) => !/^\d+$/.test(name));
  for (let length = names.length; length > 0; length--) {
    const found = byStackAndPath.get(`${stack} ${names.slice(0, length).join(".")}`);
    if (found !== undefined) return found;
  }
  return null;
}

/** Knobs whose last word is this one, those of a whole path first: what somebody meant who wrote it into a recipe. */
export function knobsNamed(path: readonly string[]): SeedKnob[] {
  const whole = path.join(".");
  const last = path.at(-1) ?? "";
  const fitting = seedKnobs.filter((knob) => knob.path === last || knob.path.endsWith(`.${last}`));
  return fitting.sort((a, b) => Number(b.path.endsWith(whole)) - Number(a.path.endsWith(whole)));
}

/** What the seed stacks call one of our keys. */
export function knownElsewhere(key: string): SeedKnob[] {
  return seedKnobs.filter(({ counterpart }) => counterpart.kind === "key" && counterpart.key === key);
}

/** What became of a knob, in a sentence without its subject. */
export function describeCounterpart(counterpart: Counterpart): string {
  switch (counterpart.kind) {
    case "key":
      return `here it is ${counterpart.key}${counterpart.note === null ? "" : ` (${counterpart.note})`}`;
    case "refused":
      return `there is no such knob here: ${counterpart.reason}`;
    case "later":
      return `it is not available yet; it comes with part ${counterpart.part}, ${laterParts[counterpart.part]}`;
  }
}
