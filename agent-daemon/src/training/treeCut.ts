// Cuts a forest into micro-batches under a token budget that is never exceeded. Subtrees stay together; where one is too
// large its children are spread over several batches and the path above them is repeated. It moves no tokens itself.
import type { PrefixTree, TreeNode } from "./prefixTree.ts";

/** Time of a batch in arbitrary units: what its tokens cost and what their attention costs. */
export interface ComputeCost {
  readonly perToken: number;
  /** One token attending to one token of its path. */
  readonly perPair: number;
}

/** One micro-batch: whole subtrees, by the index of their root; the paths above them come along. */
export interface Cut {
  readonly subtrees: readonly number[];
  readonly tokens: number;
}

interface Bin {
  /** Tokens at and below the node in question; the path above it is not counted. */
  load: number;
  subtrees: number[];
}

/** Tokens on the longest path, and the leaf it ends in. */
export function longestPath(tree: PrefixTree): { tokens: number; node: number } {
  let longest = { tokens: 0, node: -1 };
  tree.nodes.forEach(({ depth, length }, node) => {
    if (depth + length > longest.tokens) longest = { tokens: depth + length, node };
  });
  return longest;
}

/**
 * Fewest batches first: bottom-up, each node gathers what its children need and packs it (first fit, largest first) into
 * room for the budget less its own path, so a path is repeated only when a batch is full. Every path must fit the budget.
 */
export function cutForest(tree: PrefixTree, budget: number): Cut[] {
  const { nodes } = tree;
  const sizes = new Float64Array(nodes.length);
  const pending = new Map<number, Bin[]>();
  for (let index = nodes.length - 1; index >= 0; index--) {
    const node = nodes[index] as TreeNode;
    sizes[index] = (sizes[index] as number) + node.length;
    const size = sizes[index] as number;
    if (node.parent >= 0) sizes[node.parent] = (sizes[node.parent] as number) + size;
    const below = pending.get(index);
    pending.delete(index);
    let bins: Bin[];
    if (node.depth + size <= budget) {
      bins = [{ load: size, subtrees: [index] }];
    } else {
      bins = firstFit(below ?? [], budget - node.depth - node.length);
      for (const bin of bins) bin.load += node.length;
    }
    const above = pending.get(node.parent);
    if (above === undefined) pending.set(node.parent, bins);
    else above.push(...bins);
  }
  return firstFit(pending.get(-1) ?? [], budget).map((bin) => ({ subtrees: bin.subtrees, tokens: bin.load }));
}

/**
 * The cut that a step uses: no more batches than needed (for several replicas, a multiple of their number), and among such
 * cuts the one whose slowest replica is done first, then the one with the smallest largest batch.
 */
export function balancedCut(tree: PrefixTree, budget: number, replicas: number, cost: ComputeCost): Cut[] {
  const first = cutForest(tree, budget);
  const target = Math.ceil(first.length / replicas) * replicas;
  const rate = (cuts: Cut[]) => ({
    cuts,
    time: slowestReplica(tree, cuts, replicas, cost),
    largest: cuts.reduce((most, cut) => Math.max(most, cut.tokens), 0),
  });
  let best = rate(first);
  let low = longestPath(tree).tokens;
  let high = budget;
  for (let tries = 0; tries < 12 && low < high; tries++) {
    const middle = Math.floor((low + high) / 2);
    const rated = rate(cutForest(tree, middle));
    if (rated.cuts.length <= target) {
      high = middle;
      if (rated.time < best.time || (rated.time === best.time && rated.largest < best.largest)) best = rated;
    } else {
      low = middle + 1;
    }
  }
  return best.cuts;
}

/** Nodes of a cut in preorder: the subtrees and the paths above them. */
export function nodesOfCut(tree: PrefixTree, cut: Cut): number[] {
  const chosen = new Set<number>();
  for (const root of cut.subtrees) {
    for (let above = (tree.nodes[root] as TreeNode).parent; above >= 0 && !chosen.has(above); ) {
      chosen.add(above);
      above = (tree.nodes[above] as TreeNode).parent;
    }
    for (let node = root; node < (tree.nodes[root] as TreeNode).end; node++) chosen.add(node);
  }
  return [...chosen].sort((a, b) => a - b);
}

/** Time of a batch that holds these nodes. */
export function costOfNodes(tree: PrefixTree, nodes: readonly number[], cost: ComputeCost): number {
  let tokens = 0;
  let pairs = 0;
  for (const index of nodes) {
    const { depth, length } = tree.nodes[index] as TreeNode;
    tokens += length;
    pairs += length * depth + (length * (length + 1)) / 2;
  }
  return tokens * cost.perToken + pairs * cost.perPair;
}

function slowestReplica(tree: PrefixTree, cuts: readonly Cut[], replicas: number, cost: ComputeCost): number {
  const times = cuts.map((cut) => costOfNodes(tree, nodesOfCut(tree, cut), cost)).sort((a, b) => b - a);
  const busy = new Float64Array(replicas);
  for (const time of times) {
    let least = 0;
    for (let r = 1; r < replicas; r++) if ((busy[r] as number) < (busy[least] as number)) least = r;
    busy[least] = (busy[least] as number) + time;
  }
  return busy.reduce((most, time) => Math.max(most, time), 0);
}

/** First fit, largest first; ties keep their order. Items are reused as bins. */
function firstFit(items: readonly Bin[], room: number): Bin[] {
  const sorted = items
    .map((item, order) => ({ item, order }))
    .sort((a, b) => b.item.load - a.item.load || a.order - b.order);
  const bins: Bin[] = [];
  for (const { item } of sorted) {
    const bin = bins.find((candidate) => candidate.load + item.load <= room);
    if (bin === undefined) {
      bins.push(item);
    } else {
      bin.load += item.load;
      bin.subtrees =
        bin.subtrees.length >= item.subtrees.length
          ? appendAll(bin.subtrees, item.subtrees)
          : appendAll(item.subtrees, bin.subtrees);
    }
  }
  return bins;
}

function appendAll(target: number[], more: readonly number[]): number[] {
  for (const node of more) target.push(node);
  return target;
}
