// Every sampled token of a trajectory with its numbers, as rows: what the sampler said of it, and what the trainer made of it
// in one step. Pure; the numbers are those that are stored, ratios are computed from them.
import type { LoadedCall, TrainedSpan } from "../../store/loadTrajectory.ts";

export interface TokenRow {
  readonly call: string;
  /** Index among the call's sampled tokens, from 0. */
  readonly index: number;
  readonly id: number;
  /** What the token adds to the text; empty while a character is unfinished. */
  readonly text: string;
  /** Policy version that sampled it; −1 when unknown. */
  readonly version: number;
  /** Sampler's log-probability; NaN is "none" here and below. */
  readonly rollout: number;
  readonly sampled: number;
  readonly trained: boolean;
  readonly old: number;
  readonly new: number;
  readonly reference: number;
  readonly entropy: number;
  /** exp(new − old). */
  readonly ratio: number;
  readonly advantage: number;
  readonly weight: number;
}

/** The passes of a call through training, as `--step` chooses among them. */
export function trainingOf(call: LoadedCall, step: number | null): readonly TrainedSpan[] {
  const spans = step === null ? call.training : call.training.filter((span) => span.step.step === step);
  const last = spans.at(-1);
  return last === undefined ? [] : spans.filter((span) => span.step.id === last.step.id && span.pass === last.pass);
}

/**
 * @param pieces text of each token, as long as `call.output`
 * @param step show what this optimizer step made of the tokens; null = the last one that used them
 */
export function tokenRows(call: LoadedCall, pieces: readonly string[], step: number | null): TokenRow[] {
  const spans = trainingOf(call, step);
  return Array.from(call.output, (id, index): TokenRow => {
    const span = spans.find((each) => index >= each.from && index < each.from + each.length);
    const at = index - (span?.from ?? 0);
    const value = (name: keyof TrainedSpan["columns"]) => span?.columns[name]?.[at] ?? Number.NaN;
    const trained = span !== undefined && (span.columns.mask === undefined || span.columns.mask[at] === 1);
    const old = value("old");
    const now = value("new");
    return {
      call: call.document.id,
      index,
      id,
      text: pieces[index] ?? "",
      version: call.versions[index] ?? -1,
      rollout: call.logprobs[index] ?? Number.NaN,
      sampled: call.sampledLogprobs?.[index] ?? Number.NaN,
      trained,
      old,
      new: now,
      reference: value("reference"),
      entropy: value("entropy"),
      ratio: Math.exp(now - old),
      advantage: value("advantage"),
      weight: value("weight"),
    };
  });
}

export interface TokenTotals {
  readonly tokens: number;
  readonly trained: number;
  /** Σ of the sampler's log-probabilities. */
  readonly logprobSum: number;
  /** Mean over the tokens whose entropy is known; NaN where there is none. */
  readonly entropyMean: number;
}

/** @param rows every token of a record */
export function tokenTotals(rows: readonly TokenRow[]): TokenTotals {
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const entropies = rows.map((row) => row.entropy).filter((entropy) => !Number.isNaN(entropy));
  return {
    tokens: rows.length,
    trained: rows.filter((row) => row.trained).length,
    logprobSum: sum(rows.map((row) => row.rollout)),
    entropyMean: sum(entropies) / entropies.length,
  };
}
