// Trajectories for tests: one from a few plain arrays, and random forests of them with every kind of overlap.
import fc from "fast-check";
import type { Trajectory } from "../../protocol/trajectory.ts";

export interface TrajectorySketch {
  readonly tokens: readonly number[];
  /** 0/1 a token; default: all but the first. */
  readonly trainable?: readonly number[];
  readonly turn?: readonly number[];
  readonly temperature?: number | readonly number[];
  readonly rollout?: readonly number[];
  readonly record?: string;
  readonly group?: string | null;
  readonly score?: number | null;
  readonly version?: number;
}

let nextRecord = 0;

export function sketchTrajectory(sketch: TrajectorySketch): Trajectory {
  const n = sketch.tokens.length;
  const trainable = Uint8Array.from(sketch.trainable ?? sketch.tokens.map((_, i) => (i === 0 ? 0 : 1)));
  const turn = Int32Array.from(sketch.turn ?? new Array(n).fill(0));
  const { temperature = 1, record = `record-${nextRecord++}` } = sketch;
  const turns = Math.max(0, ...turn) + 1;
  return {
    record,
    calls: Array.from({ length: turns }, (_, t) => `${record}/call-${t}`),
    group: sketch.group ?? null,
    score: sketch.score === undefined ? 0 : sketch.score,
    truncated: false,
    tokens: Int32Array.from(sketch.tokens),
    trainable,
    call: turn.map((t, i) => (trainable[i] === 1 ? t : -1)),
    turn,
    temperature:
      typeof temperature === "number" ? new Float32Array(n).fill(temperature) : Float32Array.from(temperature),
    version: turn.map((_, i) => (trainable[i] === 1 ? (sketch.version ?? 0) : -1)),
    ...(sketch.rollout === undefined ? {} : { rollout: Float64Array.from(sketch.rollout) }),
  };
}

const step = fc.record({
  token: fc.integer({ min: 3, max: 6 }),
  trainable: fc.boolean(),
  newTurn: fc.boolean(),
  warm: fc.boolean(),
  rollout: fc.double({ min: -3, max: -0.2, noNaN: true }),
});

/** Each grows out of a cut of an earlier one: siblings, branches, prefixes of one another and identical samples all occur. */
export function forests(options: { trajectories: number; tail: number }): fc.Arbitrary<Trajectory[]> {
  const growth = fc.record({
    from: fc.nat(),
    cut: fc.nat(),
    tail: fc.array(step, { maxLength: options.tail, size: "max" }),
    score: fc.double({ min: -2, max: 2, noNaN: true }),
    group: fc.integer({ min: 0, max: 2 }),
  });
  return fc.array(growth, { minLength: 1, maxLength: options.trajectories, size: "max" }).map((growths) => {
    const paths: { token: number; trainable: boolean; turn: number; warm: boolean; rollout: number }[][] = [];
    return growths.map(({ from, cut, tail, score, group }, index) => {
      const source = paths.length === 0 ? [] : paths[from % paths.length]!;
      const path = source.slice(0, cut % (source.length + 1));
      for (const { newTurn, ...rest } of tail) {
        path.push({ ...rest, turn: (path.at(-1)?.turn ?? 0) + (newTurn && path.length > 0 ? 1 : 0) });
      }
      if (path.length === 0) path.push({ token: 3, trainable: false, turn: 0, warm: false, rollout: -1 });
      paths.push(path);
      return sketchTrajectory({
        tokens: path.map(({ token }) => token),
        trainable: path.map(({ trainable }, i) => (trainable && i > 0 ? 1 : 0)),
        turn: path.map(({ turn }) => turn),
        temperature: path.map(({ warm }) => (warm ? 0.7 : 1)),
        rollout: path.map(({ rollout }) => rollout),
        record: `record-${index}`,
        group: `group-${group}`,
        score,
      });
    });
  });
}
