// What a policy objective is to the rest of the product: a function from the numbers of one token (or one unit) to its loss
// and derivatives. Built-in objectives and a recipe's own are of this one form. Plain types: nothing parses them.
import type { ObjectiveConfig } from "./objective.ts";

/**
 * The numbers of one trainable token. A column that the batch does not have is NaN here; an objective that reads it
 * without saying so in `reads` gets an error, never a NaN loss.
 */
export interface ObjectiveToken {
  /** Current log-probability lp; the loss is differentiated through it. */
  readonly logp: number;
  /** Current entropy H of the distribution that the token was chosen from. */
  readonly entropy: number;
  /** Log-probability when this optimizer window began. A constant. */
  readonly old: number;
  /** Log-probability that the sampler recorded. A constant. */
  readonly rollout: number;
  /** Log-probability under the reference model. A constant. */
  readonly ref: number;
  readonly advantage: number;
  /** Optimizer steps between the weights that sampled the token and the trainer's. */
  readonly staleness: number;
  /** r = exp(clamp(logp − base, ±20)), base by `ratioBase`. */
  readonly ratio: number;
  /** dr/dlogp: r, or 0 where the log-ratio was clamped. */
  readonly ratioSlope: number;
  /** exp(clamp(logp − rollout, ±20)), whatever `ratioBase` says. */
  readonly rolloutRatio: number;
}

/** Loss of one token, before aggregation and corrections, with its derivatives. */
export interface TokenLoss {
  readonly loss: number;
  /** d loss / d logp, stop-gradients applied. */
  readonly dLogp: number;
  /** d loss / d entropy, for objectives that read `entropy`. */
  readonly dEntropy?: number | undefined;
  /** Which bound cut this token's gradient, for the clip fractions. */
  readonly clipped?: "low" | "high" | "dual" | undefined;
}

/** The parsed objective block; bounds that a recipe left out are infinite. */
export type ObjectiveSettings = Omit<ObjectiveConfig, "cap" | "softClip" | "dualClip"> & {
  readonly cap: number;
  readonly softClip: number;
  readonly dualClip: number;
};

/** `ratio` stands for the column that `ratioBase` names. */
export type ObjectiveReads = "advantage" | "ratio" | "old" | "rollout" | "ref" | "entropy" | "staleness";

interface NamedObjective {
  readonly name: string;
  /** Columns that the function reads; without it `advantage` and `ratio`. */
  readonly reads?: readonly ObjectiveReads[];
}

/** Each token's loss depends on that token's numbers alone. */
export interface TokenObjective extends NamedObjective {
  readonly scope: "token";
  readonly token: (token: ObjectiveToken, settings: ObjectiveSettings) => TokenLoss;
}

/**
 * Losses depend on the other tokens of the unit (trajectory or turn, by `unit`); needs a forward over the step first.
 * Returns one loss a token, in order; `dLogp` of a token is the derivative of the sum of the returned losses.
 */
export interface UnitObjective extends NamedObjective {
  readonly scope: "unit";
  readonly unit: (tokens: readonly ObjectiveToken[], settings: ObjectiveSettings) => readonly TokenLoss[];
}

/** A recipe's own objective: aggregated, corrected and held by KL and entropy like the built-in ones. */
export type ObjectiveDefinition = TokenObjective | UnitObjective;
