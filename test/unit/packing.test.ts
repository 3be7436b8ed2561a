import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type PackedForest,
  type PackingMode,
  packingFor,
  packTrajectories,
} from "../../agent-daemon/src/training/packing.ts";
import { buildPrefixTree, pathOf } from "../../agent-daemon/src/training/prefixTree.ts";
import type { Trajectory } from "../../protocol/trajectory.ts";
import { modelInput, ReferenceEngine } from "../support/referenceEngine.ts";
import { forests, sketchTrajectory } from "../support/trajectories.ts";

const cost = { perToken: 1, perPair: 0.01 };
const pack = (trajectories: readonly Trajectory[], mode: PackingMode = "tree", budget = 1000, replicas = 1) =>
  packTrajectories(trajectories, { mode, budget, replicas, cost });

/** The path of a slot as the engine sees it: what it attends to, token by token. */
function pathsOf(forest: PackedForest): string[][] {
  return forest.batches.map((batch) => {
    const { path } = modelInput(batch);
    return path.map((above) =>
      above.map((i) => `${batch.tokens[i]}@${batch.positions[0]![i]}/${batch.temperature[i]}`).join(" "),
    );
  });
}

function ownPath({ tokens, temperature }: Trajectory, position: number): string {
  return [...tokens.subarray(0, position + 1)].map((token, i) => `${token}@${i}/${temperature[i]}`).join(" ");
}

describe("packing", () => {
  it("gives every trainable token one slot whose path is the token's own, in every mode and budget", () => {
    fc.assert(
      fc.property(
        forests({ trajectories: 9, tail: 7 }),
        fc.constantFrom<PackingMode>("flat", "packed", "tree"),
        fc.nat(30),
        fc.integer({ min: 1, max: 4 }),
        (trajectories, mode, extra, replicas) => {
          const longest = Math.max(1, ...trajectories.map(({ trainable }) => trainable.lastIndexOf(1) + 1));
          const forest = pack(trajectories, mode, longest + extra, replicas);
          const paths = pathsOf(forest);
          const { occurrences } = forest;
          trajectories.forEach((trajectory, t) => {
            const trained = [...trajectory.trainable.keys()].filter((i) => trajectory.trainable[i] === 1);
            const own = occurrences.position.slice(occurrences.offsets[t], occurrences.offsets[t + 1]);
            expect([...own]).toEqual(trained);
          });
          for (let o = 0; o < occurrences.count; o++) {
            const t = occurrences.offsets.findLastIndex((offset) => offset <= o);
            const [batch, slot] = [occurrences.batch[o]!, occurrences.slot[o]!];
            expect(paths[batch]![slot]).toBe(ownPath(trajectories[t]!, occurrences.position[o]!));
            expect(forest.batches[batch]!.wanted[slot]).toBe(1);
          }
          for (const batch of forest.batches) expect(batch.tokens.length).toBeLessThanOrEqual(longest + extra);
        },
      ),
    );
  });

  it("evaluates every wanted slot of a tree exactly once, also where a prefix is repeated", () => {
    fc.assert(
      fc.property(forests({ trajectories: 9, tail: 7 }), fc.nat(6), (trajectories, extra) => {
        const longest = Math.max(1, ...trajectories.map(({ trainable }) => trainable.lastIndexOf(1) + 1));
        const forest = pack(trajectories, "tree", longest + extra);
        const paths = pathsOf(forest);
        const evaluated = forest.batches.flatMap((batch, b) =>
          [...batch.wanted.keys()].filter((i) => batch.wanted[i] === 1).map((i) => paths[b]![i]!),
        );
        expect(new Set(evaluated).size).toBe(evaluated.length);
        const distinct = new Set(
          trajectories.flatMap((t) =>
            [...t.trainable.keys()].filter((i) => t.trainable[i] === 1).map((i) => ownPath(t, i)),
          ),
        );
        expect(new Set(evaluated)).toEqual(distinct);
      }),
    );
  });

  it("computes each distinct path once when everything fits one batch", () => {
    fc.assert(
      fc.property(forests({ trajectories: 9, tail: 7 }), (trajectories) => {
        const forest = pack(trajectories);
        const distinct = new Set(
          trajectories.flatMap((t) => Array.from({ length: t.trainable.lastIndexOf(1) + 1 }, (_, i) => ownPath(t, i))),
        );
        expect(forest.packedTokens).toBe(distinct.size);
        expect(forest.batches.length).toBe(distinct.size === 0 ? 0 : 1);
      }),
    );
  });

  it("reports the token ratio of a GRPO step: 8 prompts of 96 tokens, 8 samples of 16 tokens", () => {
    const trajectories = Array.from({ length: 64 }, (_, i) => {
      const prompt = Array.from({ length: 96 }, (_, p) => (p === 0 ? 3 + (i >> 3) : 3));
      return sketchTrajectory({
        tokens: [...prompt, 20 + i, ...new Array(15).fill(4)],
        trainable: [...new Array(96).fill(0), ...new Array(16).fill(1)],
      });
    });
    const forest = pack(trajectories, "tree", 4096);
    expect(forest.flatTokens / forest.packedTokens).toBe(4);
  });

  it("does not share a state between temperatures, positions or forced routings", () => {
    const tokens = [3, 4, 5, 6];
    const warm = sketchTrajectory({ tokens, temperature: [1, 1, 0.7, 0.7] });
    const plain = sketchTrajectory({ tokens });
    expect(pack([plain, warm]).packedTokens).toBe(6);
    const moved = { ...plain, positions: [Int32Array.of(0, 1, 2, 9)] };
    const explicit = { ...plain, positions: [Int32Array.of(0, 1, 2, 3)] };
    expect(pack([plain, explicit]).packedTokens).toBe(4);
    expect(pack([explicit, moved]).packedTokens).toBe(5);
    const routed = (last: number) => ({
      ...plain,
      routing: { layers: 1, choices: 1, experts: Int16Array.of(0, 1, 2, last) },
    });
    expect(pack([routed(0), routed(0)]).packedTokens).toBe(4);
    const forked = pack([routed(0), routed(1)]);
    expect(forked.packedTokens).toBe(5);
    expect([...forked.batches[0]!.routing!]).toEqual([0, 1, 2, 0, 1]);
    expect(pack([routed(0), plain]).packedTokens).toBe(8);
  });

  it("repeats a prefix no more often than full batches ask for", () => {
    const branches = Array.from({ length: 6 }, (_, i) =>
      sketchTrajectory({ tokens: [...new Array(10).fill(3), 10 + i, 4, 4, 4, 4] }),
    );
    const forest = pack(branches, "tree", 25);
    expect(forest.batches.length).toBe(2);
    expect(forest.packedTokens).toBe(2 * 10 + 6 * 5);
  });

  it("names the record, its length and the budget when one path does not fit", () => {
    const long = sketchTrajectory({ tokens: new Array(31).fill(3), record: "long-one" });
    expect(() => pack([sketchTrajectory({ tokens: [3, 4] }), long], "tree", 30)).toThrowError(
      expect.objectContaining({ code: "TRAINING_PATH_TOO_LONG", at: { record: "long-one", tokens: 31, budget: 30 } }),
    );
  });

  it("leaves out what follows the last trainable token, and trajectories that have none", () => {
    const tail = sketchTrajectory({ tokens: [3, 4, 5, 6, 7], trainable: [0, 1, 0, 0, 0] });
    const none = sketchTrajectory({ tokens: [3, 4, 5], trainable: [0, 0, 0] });
    const forest = pack([tail, none]);
    expect(forest.packedTokens).toBe(2);
    expect([...forest.occurrences.offsets]).toEqual([0, 1, 1]);
  });

  it("spreads micro-batches evenly over replicas", () => {
    const rows = Array.from({ length: 24 }, (_, i) => sketchTrajectory({ tokens: [3 + i, ...new Array(9).fill(4)] }));
    const sizes = pack(rows, "tree", 1000, 4).batches.map(({ tokens }) => tokens.length);
    expect(sizes).toEqual([60, 60, 60, 60]);
  });

  it("merges a chain of nodes into one for the engine", () => {
    const forest = pack([sketchTrajectory({ tokens: [3, 4] }), sketchTrajectory({ tokens: [3, 4, 5, 6] })]);
    expect(forest.batches[0]!.nodes).toEqual([{ start: 0, end: 4, parent: -1 }]);
  });

  it("gives an engine without forests one row a path", () => {
    const engine = new ReferenceEngine({ forest: false, maxTokensPerBatch: 100 });
    const options = packingFor(engine.info(), "tree", 4096);
    expect(options).toMatchObject({ mode: "packed", budget: 100 });
    const twins = [sketchTrajectory({ tokens: [3, 4, 5] }), sketchTrajectory({ tokens: [3, 4, 5] })];
    expect(packTrajectories(twins, options).batches[0]!.nodes.map(({ parent }) => parent)).toEqual([-1, -1]);
  });

  it("handles 64 conversations of 300 turns in linear time", () => {
    const turns = 300;
    const perTurn = 40;
    const conversations = Array.from({ length: 64 }, (_, i) => {
      const tokens = Array.from({ length: turns * perTurn }, (_, at) => (at < perTurn * (i + 1) ? 3 : 4 + i));
      return sketchTrajectory({ tokens, trainable: tokens.map((_, at) => (at % perTurn >= 30 ? 1 : 0)) });
    });
    const started = performance.now();
    const tree = buildPrefixTree(conversations, true);
    const forest = pack(conversations, "tree", turns * perTurn * 4);
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(pathOf(tree, 63).length).toBeGreaterThan(60);
    expect(forest.batches.length).toBeLessThan(64);
  });
});
