// Builds packed batches by hand, for tests of engines: rows, trees, and what of them is wanted.
import type { BatchNode, PackedBatch } from "../../agent-daemon/src/engines/interface.ts";

export interface TreeNode {
  readonly tokens: readonly number[];
  /** Index of an earlier node, or −1. */
  readonly parent: number;
}

/** A forest with every token wanted that something predicts. Positions count from each root. */
export function forest(nodes: readonly TreeNode[], temperature = 1): PackedBatch {
  const placed: BatchNode[] = [];
  const firstPositions: number[] = [];
  let at = 0;
  for (const node of nodes) {
    const parent = placed[node.parent];
    firstPositions.push(parent === undefined ? 0 : (firstPositions[node.parent] ?? 0) + parent.end - parent.start);
    placed.push({ start: at, end: at + node.tokens.length, parent: node.parent });
    at += node.tokens.length;
  }
  const positions = nodes.flatMap((node, index) => node.tokens.map((_, i) => (firstPositions[index] ?? 0) + i));
  return {
    tokens: Int32Array.from(nodes.flatMap((node) => node.tokens)),
    positions: [Int32Array.from(positions)],
    nodes: placed,
    temperature: new Float32Array(at).fill(temperature),
    wanted: new Uint8Array(at).fill(1),
  };
}

/** Rows that share nothing. */
export function rows(sequences: readonly (readonly number[])[], temperature = 1): PackedBatch {
  return forest(
    sequences.map((tokens) => ({ tokens, parent: -1 })),
    temperature,
  );
}
