// Where a token's numbers came from, and the error that says so when one of them is not finite. Nothing becomes NaN silently.
import { RollscopeError } from "../../../protocol/errors.ts";

/** One number a token: an array of numbers or a typed array. */
export type Column = ArrayLike<number>;

export interface TokenPlace {
  readonly record: string;
  readonly call: string;
  /** Index of the token in its call. */
  readonly token: number;
}

/** Says where a position of a trajectory came from, for errors and links. */
export type Locate = (position: number) => TokenPlace;

/** Throws ALGORITHM_NON_FINITE naming record, call and token. `what` completes "The … of record": "log-probability". */
export function throwNonFinite(
  what: string,
  value: number,
  sequence: { readonly locate?: Locate | undefined; readonly turn?: Column | undefined },
  trajectory: number,
  position: number,
): never {
  const turn = sequence.turn?.[position];
  const place = sequence.locate?.(position) ?? {
    record: `trajectory ${trajectory}`,
    call: turn === undefined ? "unknown" : `turn ${turn}`,
    token: position,
  };
  throw new RollscopeError(
    "ALGORITHM_NON_FINITE",
    `The ${what} of record ${place.record}, call ${place.call}, token ${place.token} is ${value}.`,
    {
      next: "Look at that token with `rollscope inspect`; find out why the engine or the reward gave a number that is not finite.",
      at: { record: place.record, call: place.call, token: place.token },
    },
  );
}
