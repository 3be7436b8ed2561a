// One trajectory as training sees it: the exact token path from a root to its last call and what is known of each token.
// Plain types: values of them are made by capture (or from chat data) and never parsed.

/** Experts that were chosen for each input token; −1 leaves a choice free. */
export interface ForcedRouting {
  readonly layers: number;
  /** Experts per token and layer. */
  readonly choices: number;
  /** [layers][n][choices] */
  readonly experts: Int16Array;
}

/** All per-token arrays have the length n of `tokens`. */
export interface Trajectory {
  /** Id of the record. A record with branches has several trajectories. */
  readonly record: string;
  /** Ids of the calls on the path, in order; the last one names the trajectory. Data that nobody sampled has one call a turn. */
  readonly calls: readonly string[];
  /** Records whose scores are compared; null: no other. */
  readonly group: string | null;
  /** null: ungraded, left out of the group's statistics. */
  readonly score: number | null;
  /** Some call of it was cut off by its token limit. */
  readonly truncated: boolean;
  readonly tokens: Int32Array;
  /** 1 where the token is trained. Never at token 0, which nothing predicts. */
  readonly trainable: Uint8Array;
  /** Index into `calls` of the call that produced the token; −1 where it is input. */
  readonly call: Int32Array;
  /** Turn number, from 0; read at trainable tokens. */
  readonly turn: Int32Array;
  /** Temperature under which the token was sampled; 1 where nobody sampled it. Equal paths are shared only when it agrees. */
  readonly temperature: Float32Array;
  /** Policy version that sampled the token; −1 where none did. */
  readonly version: Int32Array;
  /** Log-probability that the sampler recorded; NaN where nobody sampled. Absent for data that was not sampled. */
  readonly rollout?: Float32Array | Float64Array;
  /** Rewards that stand at single tokens; read by gae. */
  readonly tokenRewards?: Float32Array | Float64Array;
  /** Rotary positions, one array an axis; absent: 0, 1, 2 … */
  readonly positions?: readonly Int32Array[];
  readonly routing?: ForcedRouting;
}
