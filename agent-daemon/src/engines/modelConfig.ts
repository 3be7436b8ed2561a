// The shape of a decoder-only transformer, from Hugging Face's config.json in old and new spellings. Everything that
// would change the mathematics and is not implemented is refused here; it must never be ignored.
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";
import { parseRope, type RopeConfig } from "./ropeFrequencies.ts";

export const architectures = ["llama", "qwen2", "qwen3", "qwen3_moe"] as const;
export type Architecture = (typeof architectures)[number];

export interface MixtureConfig {
  /** 0: every layer is dense. */
  readonly experts: number;
  readonly expertsPerToken: number;
  readonly intermediate: number;
  /** The chosen experts' probabilities are divided by their sum. */
  readonly normaliseTopK: boolean;
  /** [layers] */
  readonly isMixture: readonly boolean[];
}

export interface DecoderConfig {
  readonly architecture: Architecture;
  readonly vocabulary: number;
  readonly layers: number;
  readonly hidden: number;
  readonly intermediate: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly maxPositions: number;
  readonly rmsEpsilon: number;
  readonly tiedHead: boolean;
  /** Bias on q, k and v. */
  readonly attentionBias: boolean;
  /** Bias on the attention's output. */
  readonly outputBias: boolean;
  /** RMSNorm of each head on q and k, before the rotation. */
  readonly queryKeyNorm: boolean;
  readonly rope: RopeConfig;
  readonly mixture: MixtureConfig;
}

const count = z.int().positive();
const rawConfig = z.looseObject({
  model_type: z.string(),
  vocab_size: count,
  num_hidden_layers: count,
  hidden_size: count,
  intermediate_size: count,
  num_attention_heads: count,
  num_key_value_heads: count.nullish(),
  head_dim: count.nullish(),
  max_position_embeddings: count,
  rms_norm_eps: z.number().positive(),
  hidden_act: z.string().default("silu"),
  tie_word_embeddings: z.boolean().nullish(),
  attention_bias: z.boolean().nullish(),
  mlp_bias: z.boolean().nullish(),
  use_sliding_window: z.boolean().nullish(),
  layer_types: z.array(z.string()).nullish(),
  num_experts: count.nullish(),
  num_local_experts: count.nullish(),
  num_experts_per_tok: count.nullish(),
  moe_intermediate_size: count.nullish(),
  norm_topk_prob: z.boolean().nullish(),
  decoder_sparse_step: z.int().min(0).nullish(),
  mlp_only_layers: z.array(z.int().min(0)).nullish(),
});
type RawConfig = z.infer<typeof rawConfig>;

/**
 * `file` names the source in errors.
 * Errors: ENGINE_ARCHITECTURE_UNKNOWN, ENGINE_UNSUPPORTED, ENGINE_FILE_INVALID.
 */
export function parseModelConfig(json: unknown, file: string): DecoderConfig {
  const architecture = architectureOf(json, file);
  const parsed = rawConfig.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw invalid(file, `${issue?.path.join(".") ?? "config"}: ${issue?.message ?? "invalid"}`);
  }
  const raw = parsed.data;
  refuseUnsupported(raw, file);
  const heads = raw.num_attention_heads;
  const kvHeads = raw.num_key_value_heads ?? heads;
  if (heads % kvHeads !== 0) throw invalid(file, `${heads} attention heads cannot share ${kvHeads} key heads`);
  if (raw.head_dim == null && raw.hidden_size % heads !== 0) {
    throw invalid(file, `hidden_size ${raw.hidden_size} is not divisible by ${heads} heads`);
  }
  const headDim = raw.head_dim ?? raw.hidden_size / heads;
  if (headDim % 2 !== 0) throw invalid(file, `head_dim ${headDim} is odd`);
  const biased = raw.attention_bias ?? false;
  return {
    architecture,
    vocabulary: raw.vocab_size,
    layers: raw.num_hidden_layers,
    hidden: raw.hidden_size,
    intermediate: raw.intermediate_size,
    heads,
    kvHeads,
    headDim,
    maxPositions: raw.max_position_embeddings,
    rmsEpsilon: raw.rms_norm_eps,
    tiedHead: raw.tie_word_embeddings ?? false,
    attentionBias: architecture === "qwen2" ? true : biased,
    outputBias: architecture === "qwen2" ? false : biased,
    queryKeyNorm: architecture === "qwen3" || architecture === "qwen3_moe",
    rope: parseRope(raw, raw.max_position_embeddings, headDim, file),
    mixture: mixtureOf(raw, architecture, file),
  };
}

function architectureOf(json: unknown, file: string): Architecture {
  const type = z.looseObject({ model_type: z.string() }).safeParse(json);
  if (!type.success) throw invalid(file, "model_type is missing");
  const known = architectures.find((name) => name === type.data.model_type);
  if (known === undefined) {
    throw new RollscopeError("ENGINE_ARCHITECTURE_UNKNOWN", `The architecture ${type.data.model_type} is not known.`, {
      next: `Use one of ${architectures.join(", ")} with the embedded engine, or the torch engine.`,
      at: { file, model_type: type.data.model_type },
    });
  }
  return known;
}

function refuseUnsupported(raw: RawConfig, file: string): void {
  const reason =
    raw.hidden_act !== "silu"
      ? `hidden_act ${raw.hidden_act}`
      : raw.mlp_bias
        ? "mlp_bias"
        : raw.use_sliding_window || raw.layer_types?.some((type) => type !== "full_attention")
          ? "sliding-window attention"
          : undefined;
  if (reason === undefined) return;
  throw new RollscopeError("ENGINE_UNSUPPORTED", `The embedded engine does not implement ${reason}.`, {
    next: "Use the torch engine for this model.",
    at: { file },
  });
}

function mixtureOf(raw: RawConfig, architecture: Architecture, file: string): MixtureConfig {
  const layers = Array.from({ length: raw.num_hidden_layers }, (_, index) => index);
  if (architecture !== "qwen3_moe") {
    return {
      experts: 0,
      expertsPerToken: 0,
      intermediate: 0,
      normaliseTopK: false,
      isMixture: layers.map(() => false),
    };
  }
  const experts = raw.num_local_experts ?? raw.num_experts;
  const expertsPerToken = raw.num_experts_per_tok;
  const intermediate = raw.moe_intermediate_size;
  if (experts == null || expertsPerToken == null || intermediate == null) {
    throw invalid(
      file,
      "a mixture needs num_local_experts or num_experts, num_experts_per_tok and moe_intermediate_size",
    );
  }
  if (expertsPerToken > experts) throw invalid(file, `${expertsPerToken} of ${experts} experts cannot be chosen`);
  const every = raw.decoder_sparse_step ?? 1;
  const dense = new Set(raw.mlp_only_layers ?? []);
  return {
    experts,
    expertsPerToken,
    intermediate,
    normaliseTopK: raw.norm_topk_prob ?? false,
    isMixture: layers.map((index) => !dense.has(index) && every > 0 && (index + 1) % every === 0),
  };
}

function invalid(file: string, what: string): RollscopeError {
  return new RollscopeError("ENGINE_FILE_INVALID", `The model's configuration is unusable: ${what}.`, {
    next: "Fetch the model again or correct config.json.",
    at: { file },
  });
}
