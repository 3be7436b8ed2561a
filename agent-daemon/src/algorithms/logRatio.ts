// Clamps shared by every formula: a log-ratio is held to ±20 before it is exponentiated. Holds no policy of its own.

/** cl20's bound: e^20 ≈ 4.9e8 is beyond every useful ratio and far from overflow. */
const LOG_RATIO_LIMIT = 20;

/** cl(x, a, b), bounds inclusive. */
export function clamp(x: number, low: number, high: number): number {
  return Math.min(Math.max(x, low), high);
}

/** cl20(x). */
export function clampLogRatio(x: number): number {
  return clamp(x, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
}

/** d cl20(x)/dx: 1 inside and at the bounds, 0 outside. */
export function clampLogRatioSlope(x: number): number {
  return x >= -LOG_RATIO_LIMIT && x <= LOG_RATIO_LIMIT ? 1 : 0;
}

/** exp(cl20(x)). */
export function boundedRatio(logRatio: number): number {
  return Math.exp(clampLogRatio(logRatio));
}
