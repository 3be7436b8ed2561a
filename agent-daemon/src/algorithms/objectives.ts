// The policy objectives: loss of one trainable token and its derivative by logp, one function under each formula.
// lp logp, r ratio, A advantage, lo clipLow, hi clipHigh, sg stop-gradient, cl clamp with inclusive bounds.
// Nothing here knows about batches, masks, aggregation or corrections (see preparedObjective.ts).
import type { ObjectiveKind } from "../../../protocol/objective.ts";
import type {
  ObjectiveSettings,
  ObjectiveToken,
  TokenLoss,
  TokenObjective,
} from "../../../protocol/objectiveDefinition.ts";
import { clamp } from "./logRatio.ts";

type ObjectiveFunction = (token: ObjectiveToken, settings: ObjectiveSettings) => TokenLoss;

/** −lp. Supervised fine-tuning; advantages are ignored. */
const crossEntropy: ObjectiveFunction = ({ logp }) => tokenLoss(-logp, -1);

/** −A·lp */
const reinforce: ObjectiveFunction = ({ logp, advantage: A }) => tokenLoss(-A * logp, -A);

/** −A·r */
const importanceSampling: ObjectiveFunction = ({ ratio: r, ratioSlope, advantage: A }) =>
  tokenLoss(-A * r, -A * ratioSlope);

/**
 * −min(r·A, cl(r, 1−lo, 1+hi)·A); for A < 0 the min is floored at c·A, c = dualClip, without gradient strictly below it.
 * GRPO and PPO with their token's ratio, GSPO with its unit's.
 */
const clippedSurrogate: ObjectiveFunction = ({ ratio: r, ratioSlope, advantage: A }, settings) => {
  const whole = r * A;
  const cut = clamp(r, 1 - settings.clipLow, 1 + settings.clipHigh) * A;
  const surrogate = Math.min(whole, cut);
  if (A < 0 && surrogate < settings.dualClip * A) return tokenLoss(-settings.dualClip * A, 0, "dual");
  if (cut < whole) return tokenLoss(-cut, 0, A > 0 ? "high" : "low");
  return tokenLoss(-surrogate, -A * ratioSlope);
};

/** −sg(w)·A·lp with w = exp(cl20(lp − rollout)); 0 where (A > 0 and r > 1+hi) or (A < 0 and r < 1−lo) */
const minirl: ObjectiveFunction = ({ logp, ratio: r, rolloutRatio: w, advantage: A }, settings) => {
  if (A > 0 && r > 1 + settings.clipHigh) return tokenLoss(0, 0, "high");
  if (A < 0 && r < 1 - settings.clipLow) return tokenLoss(0, 0, "low");
  return tokenLoss(-w * A * logp, -w * A);
};

/** −sg(cl(r, 1−lo, 1+hi))·A·lp. The weight is clipped, the gradient is kept. */
const cispo: ObjectiveFunction = ({ logp, ratio: r, advantage: A }, settings) => {
  const weight = clamp(r, 1 - settings.clipLow, 1 + settings.clipHigh);
  return tokenLoss(-weight * A * logp, -weight * A, sideOf(r, weight));
};

/** −sg(min(r, cap))·A·lp */
const tis: ObjectiveFunction = ({ logp, ratio: r, advantage: A }, settings) => {
  const weight = Math.min(r, settings.cap);
  return tokenLoss(-weight * A * logp, -weight * A, sideOf(r, weight));
};

/** A ≥ 0: −A·lp; A < 0: −A·sg(cl(r, 0, 1))·lp, r of the token or of its trajectory (`ratioUnit`) */
const topr: ObjectiveFunction = ({ logp, ratio: r, advantage: A }) => {
  if (A >= 0) return tokenLoss(-A * logp, -A);
  const weight = clamp(r, 0, 1);
  return tokenLoss(-A * weight * logp, -A * weight, sideOf(r, weight));
};

/** −A·sg(cl(r, 1−lo, 1+hi))·lp, no gradient where r lies outside the bounds */
const kimi: ObjectiveFunction = ({ logp, ratio: r, advantage: A }, settings) => {
  const weight = clamp(r, 1 - settings.clipLow, 1 + settings.clipHigh);
  return tokenLoss(-A * weight * logp, weight === r ? -A * weight : 0, sideOf(r, weight));
};

/**
 * −A·sg(u)·lp.
 * A ≥ 0: u = min(r, 1+hi), no gradient when r > 1+hi.
 * A < 0, r > 1: u = min(r, softClip). A < 0, r ≤ 1: u = max(r, 1−lo), no gradient when r < 1−lo.
 */
const grpo2: ObjectiveFunction = ({ logp, ratio: r, advantage: A }, settings) => {
  const low = 1 - settings.clipLow;
  const high = 1 + settings.clipHigh;
  if (A >= 0 && r > high) return tokenLoss(-A * high * logp, 0, "high");
  if (A < 0 && r < low) return tokenLoss(-A * low * logp, 0, "low");
  const u = A < 0 && r > 1 ? Math.min(r, settings.softClip) : r;
  return tokenLoss(-A * u * logp, -A * u, sideOf(r, u));
};

/** On which side r was cut to `weight`, for the clip fractions. */
function sideOf(r: number, weight: number): TokenLoss["clipped"] {
  return r > weight ? "high" : r < weight ? "low" : undefined;
}

/** All built-in losses have one shape, which keeps the loop over tokens fast. */
function tokenLoss(loss: number, dLogp: number, clipped?: TokenLoss["clipped"]): TokenLoss {
  return { loss, dLogp, dEntropy: undefined, clipped };
}

function builtIn(
  name: string,
  token: ObjectiveFunction,
  ...reads: NonNullable<TokenObjective["reads"]>
): TokenObjective {
  return { name, scope: "token", reads, token };
}

/** By kind. GSPO is the clipped surrogate too: the caller hands it the ratio of the unit. */
export const builtInObjectives: Readonly<Record<Exclude<ObjectiveKind, "custom">, TokenObjective>> = {
  cross_entropy: builtIn("cross_entropy", crossEntropy),
  reinforce: builtIn("reinforce", reinforce, "advantage"),
  importance_sampling: builtIn("importance_sampling", importanceSampling, "advantage", "ratio"),
  grpo: builtIn("grpo", clippedSurrogate, "advantage", "ratio"),
  ppo: builtIn("ppo", clippedSurrogate, "advantage", "ratio"),
  gspo: builtIn("gspo", clippedSurrogate, "advantage", "ratio"),
  minirl: builtIn("minirl", minirl, "advantage", "ratio", "rollout"),
  cispo: builtIn("cispo", cispo, "advantage", "ratio"),
  tis: builtIn("tis", tis, "advantage", "ratio"),
  topr: builtIn("topr", topr, "advantage", "ratio"),
  kimi: builtIn("kimi", kimi, "advantage", "ratio"),
  grpo2: builtIn("grpo2", grpo2, "advantage", "ratio"),
};
