// A forest over any set of trajectories in which equal paths exist once. Two trajectories share a node only where the whole
// path from its root agrees in token, position, temperature and forced routing. It knows nothing of budgets or batches.
import type { Trajectory } from "../../../protocol/trajectory.ts";

export interface TreeNode {
  /** Index of an earlier node, −1 for a root. */
  readonly parent: number;
  /** Tokens of the path before this node. */
  readonly depth: number;
  readonly length: number;
  /** A trajectory whose tokens [depth, depth + length) are those of the node. */
  readonly trajectory: number;
  /** Nodes [index, end) are this node and all below it: nodes stand in preorder. */
  readonly end: number;
}

export interface PrefixTree {
  readonly nodes: readonly TreeNode[];
  /** Last node of each trajectory's path; −1 for a trajectory that needs no computation. */
  readonly leaves: Int32Array;
  /** Tokens of each trajectory up to its last trainable one: what follows influences nothing. */
  readonly lengths: Int32Array;
}

interface OpenNode {
  parent: number;
  depth: number;
  length: number;
  readonly trajectory: number;
  /** First token of a child → children that begin with it. */
  children: Map<number, number[]>;
}

/**
 * Builds the forest in time linear in the tokens. With `share` false every trajectory is a root of its own.
 * Trajectories without a trainable token are left out.
 */
export function buildPrefixTree(trajectories: readonly Trajectory[], share: boolean): PrefixTree {
  const lengths = Int32Array.from(trajectories, trainedLength);
  const open: OpenNode[] = [];
  const roots = new Map<number, number[]>();
  const leaves = new Int32Array(trajectories.length).fill(-1);
  trajectories.forEach((trajectory, index) => {
    const length = lengths[index] as number;
    if (length === 0) return;
    let node = -1;
    let depth = 0;
    while (depth < length) {
      const children = node < 0 ? roots : (open[node] as OpenNode).children;
      const first = trajectory.tokens[depth] as number;
      const next = share ? findChild(open, trajectories, children, trajectory, depth) : -1;
      if (next < 0) {
        open.push({ parent: node, depth, length: length - depth, trajectory: index, children: new Map() });
        append(children, first, open.length - 1);
        node = open.length - 1;
        break;
      }
      const child = open[next] as OpenNode;
      const agreed = agreement(
        trajectories[child.trajectory] as Trajectory,
        trajectory,
        depth,
        Math.min(child.length, length - depth),
      );
      node = agreed === child.length ? next : split(open, trajectories, children, next, agreed);
      depth += agreed;
    }
    leaves[index] = node;
  });
  return inPreorder(open, roots, leaves, lengths);
}

/** Node indices of a trajectory's path, root first. */
export function pathOf(tree: PrefixTree, trajectory: number): number[] {
  const path: number[] = [];
  for (let node = tree.leaves[trajectory] as number; node >= 0; node = (tree.nodes[node] as TreeNode).parent)
    path.push(node);
  return path.reverse();
}

function trainedLength(trajectory: Trajectory): number {
  return trajectory.trainable.lastIndexOf(1) + 1;
}

function append(children: Map<number, number[]>, token: number, node: number): void {
  const siblings = children.get(token);
  if (siblings === undefined) children.set(token, [node]);
  else siblings.push(node);
}

function findChild(
  open: readonly OpenNode[],
  trajectories: readonly Trajectory[],
  children: ReadonlyMap<number, number[]>,
  trajectory: Trajectory,
  depth: number,
): number {
  for (const candidate of children.get(trajectory.tokens[depth] as number) ?? []) {
    const owner = trajectories[(open[candidate] as OpenNode).trajectory] as Trajectory;
    if (agreement(owner, trajectory, depth, 1) === 1) return candidate;
  }
  return -1;
}

/** How many of the tokens [from, from + limit) agree in everything that a state or its output depends on. */
function agreement(a: Trajectory, b: Trajectory, from: number, limit: number): number {
  const plain =
    a.positions === undefined && b.positions === undefined && a.routing === undefined && b.routing === undefined;
  for (let i = 0; i < limit; i++) {
    const at = from + i;
    if (a.tokens[at] !== b.tokens[at] || a.temperature[at] !== b.temperature[at]) return i;
    if (!plain && !(samePosition(a, b, at) && sameRouting(a, b, at))) return i;
  }
  return limit;
}

function samePosition(a: Trajectory, b: Trajectory, at: number): boolean {
  const axes = Math.max(a.positions?.length ?? 1, b.positions?.length ?? 1);
  for (let axis = 0; axis < axes; axis++) {
    if ((a.positions?.[axis]?.[at] ?? at) !== (b.positions?.[axis]?.[at] ?? at)) return false;
  }
  return true;
}

function sameRouting(a: Trajectory, b: Trajectory, at: number): boolean {
  const x = a.routing;
  const y = b.routing;
  if (x === undefined || y === undefined) return x === y;
  if (x.layers !== y.layers || x.choices !== y.choices) return false;
  for (let layer = 0; layer < x.layers; layer++) {
    for (let k = 0; k < x.choices; k++) {
      const inA = x.experts[(layer * a.tokens.length + at) * x.choices + k];
      if (inA !== y.experts[(layer * b.tokens.length + at) * x.choices + k]) return false;
    }
  }
  return true;
}

/** Cuts `node` after `length` tokens; the new upper part takes its place among `children` and is returned. */
function split(
  open: OpenNode[],
  trajectories: readonly Trajectory[],
  children: Map<number, number[]>,
  node: number,
  length: number,
): number {
  const lower = open[node] as OpenNode;
  const owner = trajectories[lower.trajectory] as Trajectory;
  const upper = open.length;
  open.push({ parent: lower.parent, depth: lower.depth, length, trajectory: lower.trajectory, children: new Map() });
  const siblings = children.get(owner.tokens[lower.depth] as number) as number[];
  siblings[siblings.indexOf(node)] = upper;
  lower.parent = upper;
  lower.depth += length;
  lower.length -= length;
  append((open[upper] as OpenNode).children, owner.tokens[lower.depth] as number, node);
  return upper;
}

/** Renumbers: parents before children, a subtree in one piece. A stack instead of recursion, because paths may be deep. */
function inPreorder(
  open: readonly OpenNode[],
  roots: ReadonlyMap<number, number[]>,
  leaves: Int32Array,
  lengths: Int32Array,
): PrefixTree {
  const order: number[] = [];
  const renumbered = new Int32Array(open.length);
  const stack = [...roots.values()].flat().reverse();
  while (stack.length > 0) {
    const node = stack.pop() as number;
    renumbered[node] = order.length;
    order.push(node);
    const below = [...(open[node] as OpenNode).children.values()].flat();
    for (let i = below.length - 1; i >= 0; i--) stack.push(below[i] as number);
  }
  const ends = new Int32Array(order.length);
  for (let i = order.length - 1; i >= 0; i--) {
    ends[i] = Math.max(ends[i] as number, i + 1);
    const parent = (open[order[i] as number] as OpenNode).parent;
    if (parent >= 0) {
      const above = renumbered[parent] as number;
      ends[above] = Math.max(ends[above] as number, ends[i] as number);
    }
  }
  const nodes = order.map((node, index): TreeNode => {
    const { parent, depth, length, trajectory } = open[node] as OpenNode;
    return {
      parent: parent < 0 ? -1 : (renumbered[parent] as number),
      depth,
      length,
      trajectory,
      end: ends[index] as number,
    };
  });
  return { nodes, leaves: leaves.map((leaf) => (leaf < 0 ? -1 : (renumbered[leaf] as number))), lengths };
}
