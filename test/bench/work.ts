// The work that every bench gives to all parties: token rows from a fixed stream of numbers, and how times become ratios.
import type { Trajectory } from "../../protocol/trajectory.ts";

export interface GroupShape {
  readonly prompts: number;
  readonly promptTokens: number;
  readonly samples: number;
  readonly sampleTokens: number;
}

/** A small fixed generator: the rows of a bench are the same in every run. */
function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state;
  };
}

/** [rows][tokens] ids below `vocabulary`, special ids left out. */
export function tokenRows(rows: number, tokens: number, vocabulary: number, seed: number): number[][] {
  const next = numbers(seed);
  return Array.from({ length: rows }, () => Array.from({ length: tokens }, () => 100 + (next() % (vocabulary - 100))));
}

/** Rows of a GRPO step: every prompt `samples` times, each time with another continuation. */
export function groupRows(shape: GroupShape, vocabulary: number): number[][] {
  const prompts = tokenRows(shape.prompts, shape.promptTokens, vocabulary, 1);
  const samples = tokenRows(shape.prompts * shape.samples, shape.sampleTokens, vocabulary, 2);
  return samples.map((sample, index) => [...prompts[Math.floor(index / shape.samples)]!, ...sample]);
}

/** Rows as trajectories whose tokens from `wantedFrom` on are trained. */
export function asTrajectories(rows: readonly number[][], wantedFrom: number): Trajectory[] {
  return rows.map((row, index) => ({
    record: `row-${index}`,
    calls: [`row-${index}-call`],
    group: null,
    score: null,
    truncated: false,
    tokens: Int32Array.from(row),
    trainable: Uint8Array.from(row, (_, at) => (at >= wantedFrom ? 1 : 0)),
    call: Int32Array.from(row, (_, at) => (at >= wantedFrom ? 0 : -1)),
    turn: new Int32Array(row.length),
    temperature: new Float32Array(row.length).fill(1),
    version: new Int32Array(row.length).fill(-1),
  }));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The line that ends a bench. */
export function report(bench: string, values: Record<string, number>, context: Record<string, unknown>): void {
  const rounded = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Number(value.toPrecision(4))]));
  console.log(JSON.stringify({ bench, values: rounded, context }));
}
