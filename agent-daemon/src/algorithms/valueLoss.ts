// The critic's loss of one token: max((V−R)², (V_old + cl(V−V_old, −c, c) − R)²), no ½; at a tie the unclipped branch.
import { clamp } from "./logRatio.ts";

export interface ValueTerm {
  readonly loss: number;
  /** d loss / d V */
  readonly dValue: number;
  /** The new value moved further than the clip. Told by V itself: the clipped one never does. */
  readonly clipped: boolean;
}

/** V `value` now, V_old `oldValue`, R `returns`, c `clip` (infinite: not clipped). */
export function valueTerm(value: number, oldValue: number, returns: number, clip: number): ValueTerm {
  const moved = value - oldValue;
  const clipped = Math.abs(moved) > clip;
  const error = value - returns;
  const clippedError = oldValue + clamp(moved, -clip, clip) - returns;
  if (clipped && clippedError * clippedError > error * error) {
    return { loss: clippedError * clippedError, dValue: 0, clipped };
  }
  return { loss: error * error, dValue: 2 * error, clipped };
}
