import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { counterRandom, DataCursor, epochOrder } from "../../../agent-daemon/src/recipes/dataOrder.ts";

const take = (cursor: DataCursor, count: number) => Array.from({ length: count }, () => cursor.next());

describe("data order", () => {
  it("visits every item once an epoch, in another order each epoch", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.nat(), fc.nat({ max: 1000 }), (count, seed, epoch) => {
        expect([...epochOrder(count, seed, epoch)].sort((a, b) => a - b)).toEqual([...Array(count).keys()]);
      }),
    );
    const orders = [0, 1, 2, 3].map((epoch) => epochOrder(100, 7, epoch).join());
    expect(new Set([...orders, epochOrder(100, 8, 0).join()]).size).toBe(5);
  });

  it("goes on exactly where it was when it is built again at any position", () => {
    const place = fc.record({
      count: fc.integer({ min: 1, max: 20 }),
      seed: fc.option(fc.nat()),
      taken: fc.nat({ max: 60 }),
    });
    fc.assert(
      fc.property(place, ({ count, seed, taken }) => {
        const whole = new DataCursor(count, seed);
        take(whole, taken);
        const resumed = new DataCursor(count, seed, whole.at);
        expect(resumed.at).toEqual(whole.at);
        expect(take(resumed, 50)).toEqual(take(whole, 50));
      }),
    );
  });

  it("leaves the items as they stand without a seed", () => {
    expect(take(new DataCursor(3, null), 5).map(({ item, epoch }) => [item, epoch])).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
      [0, 1],
      [1, 1],
    ]);
  });

  it("puts every item in every place equally often", () => {
    const counts = Array.from({ length: 4 }, () => [0, 0, 0, 0]);
    const epochs = 4000;
    for (let epoch = 0; epoch < epochs; epoch++)
      for (const [place, item] of epochOrder(4, 3, epoch).entries()) counts[place]![item]!++;
    // Mean 1000, standard deviation 27.
    for (const count of counts.flat()) expect(Math.abs(count - epochs / 4)).toBeLessThan(150);
  });

  it("draws numbers that depend on each counter", () => {
    const drawn = new Set<number>();
    for (let seed = 0; seed < 10; seed++)
      for (let a = 0; a < 10; a++) for (let b = 0; b < 10; b++) drawn.add(counterRandom(seed, a, b));
    expect(drawn.size).toBe(1000);
    for (const value of drawn) expect(value >= 0 && value < 1).toBe(true);
  });
});
