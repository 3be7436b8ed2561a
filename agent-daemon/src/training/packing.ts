// From trajectories to micro-batches: lays out each cut of the forest as a PackedBatch and says where every occurrence
// (trajectory, position) finds its slot (batch, index). A repeated prefix is evaluated once, where it first stands.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { BatchNode, ModelInfo, PackedBatch } from "../engines/interface.ts";
import { buildPrefixTree, type PrefixTree, pathOf, type TreeNode } from "./prefixTree.ts";
import { balancedCut, type ComputeCost, type Cut, costOfNodes, longestPath, nodesOfCut } from "./treeCut.ts";

/** flat: one path a batch. packed: several paths a batch, nothing shared. tree: equal prefixes once. */
export type PackingMode = "flat" | "packed" | "tree";

export interface PackingOptions {
  readonly mode: PackingMode;
  /** Most tokens in a batch. */
  readonly budget: number;
  readonly replicas: number;
  readonly cost: ComputeCost;
}

/** Occurrences are the trainable tokens, trajectory by trajectory, in order; their numbers run through the whole batch. */
export interface Occurrences {
  readonly count: number;
  /** [trajectories + 1] number of each trajectory's first occurrence */
  readonly offsets: Int32Array;
  /** [count] position in its trajectory */
  readonly position: Int32Array;
  /** [count] */
  readonly batch: Int32Array;
  /** [count] index into the arrays of the batch */
  readonly slot: Int32Array;
}

export interface PackedForest {
  readonly batches: readonly PackedBatch[];
  readonly occurrences: Occurrences;
  /** Occurrence numbers of each batch, rising. */
  readonly members: readonly Int32Array[];
  /** Tokens if each trajectory were computed by itself, up to its last trainable token. */
  readonly flatTokens: number;
  readonly packedTokens: number;
}

/** What an engine asks of packing: rows for one without `forest`, its own bound below the recipe's. */
export function packingFor(info: ModelInfo, wanted: "tree" | "rows", tokenBudget: number): PackingOptions {
  return {
    mode: wanted === "tree" && info.capabilities.forest ? "tree" : "packed",
    budget: Math.min(tokenBudget, info.capabilities.maxTokensPerBatch),
    replicas: info.replicas,
    cost: { perToken: 2 * info.parameters, perPair: 4 * info.layers * info.hiddenSize },
  };
}

/**
 * Packs trajectories. Largest batches come first.
 * @throws TRAINING_PATH_TOO_LONG for a trajectory that exceeds the budget by itself
 */
export function packTrajectories(trajectories: readonly Trajectory[], options: PackingOptions): PackedForest {
  const tree = buildPrefixTree(trajectories, options.mode === "tree");
  refuseLongPaths(tree, trajectories, options.budget);
  const cuts: Cut[] =
    options.mode === "flat"
      ? tree.nodes.map((node, index) => ({ subtrees: [index], tokens: node.length }))
      : balancedCut(tree, options.budget, options.replicas, options.cost);
  const layouts = cuts
    .map((cut, order) => {
      const nodes = nodesOfCut(tree, cut);
      return { nodes, order, cost: costOfNodes(tree, nodes, options.cost) };
    })
    .sort((a, b) => b.cost - a.cost || a.order - b.order)
    .map(({ nodes }) => nodes);
  const owners = ownersOf(tree, layouts);
  const { occurrences, wanted } = placeOccurrences(trajectories, tree, owners);
  const batches = layouts.map((nodes, batch) => layOut(trajectories, tree, nodes, owners, batch, wanted));
  return {
    batches,
    occurrences,
    members: membersOf(occurrences, batches.length),
    flatTokens: tree.lengths.reduce((sum, length) => sum + length, 0),
    packedTokens: batches.reduce((sum, batch) => sum + batch.tokens.length, 0),
  };
}

function refuseLongPaths(tree: PrefixTree, trajectories: readonly Trajectory[], budget: number): void {
  const longest = longestPath(tree);
  if (longest.tokens <= budget) return;
  const { record } = trajectories[(tree.nodes[longest.node] as TreeNode).trajectory] as Trajectory;
  throw new RollscopeError(
    "TRAINING_PATH_TOO_LONG",
    `Record ${record} needs ${longest.tokens} tokens in one micro-batch, but at most ${budget} are allowed.`,
    {
      next: `Raise training.tokenBudget to at least ${longest.tokens}; if the engine's memory is the bound, shorten trajectories (sampling.maxNewTokens, sampling.maxTurns).`,
      at: { record, tokens: longest.tokens, budget },
    },
  );
}

interface Owners {
  /** [nodes] batch that evaluates the node's outputs */
  readonly batch: Int32Array;
  /** [nodes] first token of the node in that batch */
  readonly start: Int32Array;
}

function ownersOf(tree: PrefixTree, layouts: readonly (readonly number[])[]): Owners {
  const batch = new Int32Array(tree.nodes.length).fill(-1);
  const start = new Int32Array(tree.nodes.length);
  layouts.forEach((nodes, index) => {
    let at = 0;
    for (const node of nodes) {
      if (batch[node] === -1) {
        batch[node] = index;
        start[node] = at;
      }
      at += (tree.nodes[node] as TreeNode).length;
    }
  });
  return { batch, start };
}

function placeOccurrences(
  trajectories: readonly Trajectory[],
  tree: PrefixTree,
  owners: Owners,
): { occurrences: Occurrences; wanted: Map<number, Uint8Array> } {
  const offsets = new Int32Array(trajectories.length + 1);
  trajectories.forEach(({ trainable }, t) => {
    offsets[t + 1] = (offsets[t] as number) + trainable.reduce((sum, flag) => sum + flag, 0);
  });
  const count = offsets[trajectories.length] as number;
  const position = new Int32Array(count);
  const batch = new Int32Array(count);
  const slot = new Int32Array(count);
  const wanted = new Map<number, Uint8Array>();
  trajectories.forEach(({ trainable }, t) => {
    let o = offsets[t] as number;
    for (const index of pathOf(tree, t)) {
      const node = tree.nodes[index] as TreeNode;
      const flags = wanted.get(index) ?? new Uint8Array(node.length);
      wanted.set(index, flags);
      for (let i = 0; i < node.length; i++) {
        if (trainable[node.depth + i] !== 1) continue;
        flags[i] = 1;
        position[o] = node.depth + i;
        batch[o] = owners.batch[index] as number;
        slot[o] = (owners.start[index] as number) + i;
        o++;
      }
    }
  });
  return { occurrences: { count, offsets, position, batch, slot }, wanted };
}

function layOut(
  trajectories: readonly Trajectory[],
  tree: PrefixTree,
  nodes: readonly number[],
  owners: Owners,
  batch: number,
  wantedOf: ReadonlyMap<number, Uint8Array>,
): PackedBatch {
  const size = nodes.reduce((sum, node) => sum + (tree.nodes[node] as TreeNode).length, 0);
  const axes = trajectories[0]?.positions?.length ?? 1;
  const tokens = new Int32Array(size);
  const positions = Array.from({ length: axes }, () => new Int32Array(size));
  const temperature = new Float32Array(size);
  const wanted = new Uint8Array(size);
  const chain = new ChainedNodes(tree, nodes);
  let start = 0;
  for (const index of nodes) {
    const node = tree.nodes[index] as TreeNode;
    const source = trajectories[node.trajectory] as Trajectory;
    const end = node.depth + node.length;
    tokens.set(source.tokens.subarray(node.depth, end), start);
    temperature.set(source.temperature.subarray(node.depth, end), start);
    positions.forEach((axis, a) => {
      const given = source.positions?.[a];
      for (let i = 0; i < node.length; i++) axis[start + i] = given?.[node.depth + i] ?? node.depth + i;
    });
    if (owners.batch[index] === batch) wanted.set(wantedOf.get(index) as Uint8Array, start);
    chain.add(index, start);
    start += node.length;
  }
  const routing = layOutRouting(trajectories, tree, nodes, size);
  return { tokens, positions, nodes: chain.nodes, temperature, wanted, ...(routing === undefined ? {} : { routing }) };
}

/** A node that directly follows its parent and is its only child in the batch is the same node to an engine. */
class ChainedNodes {
  readonly nodes: BatchNode[] = [];
  readonly #tree: PrefixTree;
  readonly #children = new Map<number, number>();
  readonly #place = new Map<number, number>();
  #previous = -1;

  constructor(tree: PrefixTree, nodes: readonly number[]) {
    this.#tree = tree;
    for (const index of nodes) {
      const { parent } = tree.nodes[index] as TreeNode;
      this.#children.set(parent, (this.#children.get(parent) ?? 0) + 1);
    }
  }

  add(index: number, start: number): void {
    const { parent, length } = this.#tree.nodes[index] as TreeNode;
    const end = start + length;
    const last = this.nodes.at(-1);
    if (last !== undefined && parent >= 0 && parent === this.#previous && this.#children.get(parent) === 1) {
      this.nodes[this.nodes.length - 1] = { ...last, end };
    } else {
      this.nodes.push({ start, end, parent: parent < 0 ? -1 : (this.#place.get(parent) as number) });
    }
    this.#place.set(index, this.nodes.length - 1);
    this.#previous = index;
  }
}

/** [layers][n][choices]; −1 for trajectories that have none. undefined when none of the batch has any. */
function layOutRouting(
  trajectories: readonly Trajectory[],
  tree: PrefixTree,
  nodes: readonly number[],
  size: number,
): Int16Array | undefined {
  const sourceOf = (index: number) => trajectories[(tree.nodes[index] as TreeNode).trajectory] as Trajectory;
  const shape = nodes.map(sourceOf).find(({ routing }) => routing !== undefined)?.routing;
  if (shape === undefined) return undefined;
  const { layers, choices } = shape;
  const experts = new Int16Array(layers * size * choices).fill(-1);
  let start = 0;
  for (const index of nodes) {
    const { depth, length } = tree.nodes[index] as TreeNode;
    const { routing, tokens } = sourceOf(index);
    for (let layer = 0; routing !== undefined && layer < layers; layer++) {
      const from = (layer * tokens.length + depth) * choices;
      experts.set(routing.experts.subarray(from, from + length * choices), (layer * size + start) * choices);
    }
    start += length;
  }
  return experts;
}

function membersOf(occurrences: Occurrences, batches: number): Int32Array[] {
  const counts = new Int32Array(batches);
  for (const batch of occurrences.batch) counts[batch] = (counts[batch] as number) + 1;
  const members = Array.from(counts, (count) => new Int32Array(count));
  const filled = new Int32Array(batches);
  occurrences.batch.forEach((batch, occurrence) => {
    const at = filled[batch] as number;
    (members[batch] as Int32Array)[at] = occurrence;
    filled[batch] = at + 1;
  });
  return members;
}
