// Rotary position frequencies from a config's rope settings: default, linear, llama3 and yarn (Peng et al. 2023), computed
// in double and handed to the engine, which knows no scaling rule.
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";

export interface RopeConfig {
  /** [headDim / 2] radians a position. */
  readonly inverseFrequencies: Float64Array;
  /** Multiplies cosines and sines (yarn). */
  readonly attentionScale: number;
}

const rawRope = z.looseObject({
  rope_theta: z.number().positive().optional(),
  rope_type: z.string().optional(),
  type: z.string().optional(),
  factor: z.number().positive().nullish(),
  low_freq_factor: z.number().positive().optional(),
  high_freq_factor: z.number().positive().optional(),
  original_max_position_embeddings: z.number().positive().nullish(),
  beta_fast: z.number().nullish(),
  beta_slow: z.number().nullish(),
  truncate: z.boolean().nullish(),
  attention_factor: z.number().nullish(),
  mscale: z.number().nullish(),
  mscale_all_dim: z.number().nullish(),
  partial_rotary_factor: z.number().nullish(),
});
type RawRope = z.infer<typeof rawRope>;

/**
 * Reads `rope_parameters` (new spelling) or `rope_theta` with `rope_scaling` (old).
 * Errors: ENGINE_FILE_INVALID, ENGINE_UNSUPPORTED for a kind that is not implemented.
 */
export function parseRope(
  config: Readonly<Record<string, unknown>>,
  maxPositions: number,
  headDim: number,
  file: string,
): RopeConfig {
  const source = config["rope_parameters"] ?? config["rope_scaling"] ?? {};
  const parsed = rawRope.safeParse(source);
  const theta = z
    .number()
    .positive()
    .optional()
    .safeParse(config["rope_theta"] ?? undefined);
  if (!parsed.success || !theta.success) throw unusable(file, "the rope settings cannot be read");
  const rope = parsed.data;
  const rotated = rope.partial_rotary_factor ?? config["partial_rotary_factor"] ?? 1;
  if (rotated !== 1) throw unsupported(file, "a rotation of only a part of each head");
  const base = ropeFrequencies(rope.rope_theta ?? theta.data ?? 10000, headDim);
  const kind = rope.rope_type ?? rope.type ?? "default";
  switch (kind) {
    case "default":
      return { inverseFrequencies: base, attentionScale: 1 };
    case "linear":
      return { inverseFrequencies: base.map((f) => f / needed(rope.factor, "factor", file)), attentionScale: 1 };
    case "llama3":
      return { inverseFrequencies: llama3(base, rope, file), attentionScale: 1 };
    case "yarn":
      return yarn(base, rope.rope_theta ?? theta.data ?? 10000, rope, maxPositions, headDim, file);
    default:
      throw unsupported(file, `rope scaling of the kind ${kind}`);
  }
}

/** theta^(−2i / headDim) for i in [0, headDim / 2). */
export function ropeFrequencies(theta: number, headDim: number): Float64Array {
  return Float64Array.from({ length: headDim / 2 }, (_, i) => theta ** ((-2 * i) / headDim));
}

/** Long waves are divided by the factor, short ones kept, those between blended. */
export function llama3Frequencies(
  base: Float64Array,
  settings: { factor: number; low: number; high: number; original: number },
): Float64Array {
  return base.map((frequency) => {
    const wave = (2 * Math.PI) / frequency;
    if (wave < settings.original / settings.high) return frequency;
    if (wave > settings.original / settings.low) return frequency / settings.factor;
    const kept = (settings.original / wave - settings.low) / (settings.high - settings.low);
    return ((1 - kept) * frequency) / settings.factor + kept * frequency;
  });
}

function llama3(base: Float64Array, rope: RawRope, file: string): Float64Array {
  return llama3Frequencies(base, {
    factor: needed(rope.factor, "factor", file),
    low: needed(rope.low_freq_factor, "low_freq_factor", file),
    high: needed(rope.high_freq_factor, "high_freq_factor", file),
    original: needed(rope.original_max_position_embeddings, "original_max_position_embeddings", file),
  });
}

function yarn(
  base: Float64Array,
  theta: number,
  rope: RawRope,
  maxPositions: number,
  headDim: number,
  file: string,
): RopeConfig {
  const original = rope.original_max_position_embeddings ?? maxPositions;
  const factor = rope.factor ?? needed(maxPositions / original, "factor", file);
  const dimensionOf = (rotations: number) =>
    (headDim * Math.log(original / (rotations * 2 * Math.PI))) / (2 * Math.log(theta));
  const truncate = rope.truncate ?? true;
  const fast = dimensionOf(rope.beta_fast ?? 32);
  const slow = dimensionOf(rope.beta_slow ?? 1);
  const low = Math.max(truncate ? Math.floor(fast) : fast, 0);
  let high = Math.min(truncate ? Math.ceil(slow) : slow, headDim - 1);
  if (low === high) high += 0.001;
  const inverseFrequencies = base.map((frequency, i) => {
    const interpolated = Math.min(1, Math.max(0, (i - low) / (high - low)));
    return (frequency / factor) * interpolated + frequency * (1 - interpolated);
  });
  return { inverseFrequencies, attentionScale: rope.attention_factor ?? yarnScale(factor, rope) };
}

function yarnScale(factor: number, rope: RawRope): number {
  const scale = (weight: number) => (factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1);
  return rope.mscale && rope.mscale_all_dim ? scale(rope.mscale) / scale(rope.mscale_all_dim) : scale(1);
}

function needed(value: number | null | undefined, key: string, file: string): number {
  if (value == null) throw unusable(file, `the rope settings lack ${key}`);
  return value;
}

function unusable(file: string, what: string): RollscopeError {
  return new RollscopeError("ENGINE_FILE_INVALID", `The model's configuration is unusable: ${what}.`, {
    next: "Fetch the model again or correct config.json.",
    at: { file },
  });
}

function unsupported(file: string, what: string): RollscopeError {
  return new RollscopeError("ENGINE_UNSUPPORTED", `The embedded engine does not implement ${what}.`, {
    next: "Use the torch engine for this model.",
    at: { file },
  });
}
