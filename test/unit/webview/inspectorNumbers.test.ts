// The inspector's pure parts: numbers as they were stored, places, branches, colours, and pages that are read once.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { TrajectoryOutline } from "../../../protocol/trajectoryView.ts";
import { branchTurns } from "../../../webview/inspector/branchTurns.ts";
import { pagedStore } from "../../../webview/inspector/pagedStore.ts";
import { openSearch } from "../../../webview/inspector/search.ts";
import { painter, tokenScale } from "../../../webview/inspector/tokenScale.ts";
import { readPlace, storedNumber, visibleText } from "../../../webview/inspector/tokenText.ts";
import { readView } from "../../../webview/inspector/view.ts";
import { contrast, parseColour } from "../../../webview/shared/colour.ts";

const read = (text: string) => Number(text.replaceAll("−", "-"));

test("a shown number is the stored 32-bit number, and exact digits are the number itself", () => {
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(Object.is(Math.fround(read(storedNumber(value, false))), value)).toBe(true);
      expect(read(storedNumber(value, true))).toBe(value);
    }),
  );
  expect(storedNumber(Math.fround(-0.1), false)).toBe("−0.1");
  expect(storedNumber(Math.fround(-0.1), true)).toBe("−0.10000000149011612");
  expect(storedNumber(Number.NaN, false)).toBe("NaN");
});

test("white space and control characters of a token can be seen", () => {
  expect(visibleText(" a\n\tb\u001b")).toBe("·a↵⇥b␛");
});

test("a place is a turn as people count it, or a token", () => {
  expect(readPlace("12")).toEqual({ kind: "turn", number: 11 });
  expect(readPlace(" t500 ")).toEqual({ kind: "token", number: 500 });
  expect(readPlace("token 7")).toEqual({ kind: "token", number: 7 });
  expect(readPlace("0")).toBeNull();
  expect(readPlace("twelve")).toBeNull();
});

test("turns of a branch have places without gaps", () => {
  const outline = {
    turnCount: 8,
    branches: [
      { leaf: "a", turns: [[0, 6]], drift: null },
      {
        leaf: "b",
        turns: [
          [0, 2],
          [5, 8],
        ],
        drift: null,
      },
    ],
  } as unknown as TrajectoryOutline;
  const order = branchTurns(outline, 1);
  expect(Array.from({ length: order.count }, (_, place) => order.turnAt(place))).toEqual([0, 1, 5, 6, 7]);
  expect([0, 1, 3, 5, 7].map((turn) => order.placeOf(turn))).toEqual([0, 1, -1, 2, 4]);
});

test("colours follow numbers in order, with a sign where one matters", () => {
  const ratio = tokenScale("ratio", 0.5, 4);
  expect(ratio.position(1)).toBeCloseTo(0);
  expect(ratio.position(4)).toBeCloseTo(1);
  expect(ratio.position(0.5)).toBeLessThan(0);
  expect(Number.isNaN(ratio.position(Number.NaN))).toBe(true);
  for (const column of ["logprob", "ratio", "advantage", "entropy", "version", "weight"]) {
    const scale = tokenScale(column, column === "logprob" ? -7 : 0.25, column === "logprob" ? 0 : 9);
    const places = scale.stops.map((stop) => scale.position(stop));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places.at(-1)).toBeCloseTo(1);
  }
  expect(tokenScale("advantage", 0, 0).position(0)).toBe(0);
  expect(tokenScale("version", 3, 3).position(3)).toBe(0.5);
});

test.each([
  ["#ffffff", "#3b3b3b"],
  ["#1f1f1f", "#cccccc"],
  ["#000000", "#ffffff"],
  ["#ffffff", "#292929"],
])("text on every colour of a strip on %s has a contrast of 4.5", (background, foreground) => {
  const paint = painter({ background, foreground });
  for (let at = -1; at <= 1; at += 0.01) {
    const look = paint(at)!;
    expect(contrast(parseColour(look.background)!, parseColour(look.color)!)).toBeGreaterThanOrEqual(4.5);
  }
  expect(paint(Number.NaN)).toBeNull();
});

test("a page is read once, the oldest are forgotten, and one that was not full is read again when there is more", async () => {
  const asked: number[] = [];
  let there = 25;
  const store = pagedStore<number>(
    10,
    3,
    async (from, to) => {
      asked.push(from);
      return Array.from({ length: Math.max(0, Math.min(to, there) - from) }, (_, i) => from + i);
    },
    (error) => {
      throw error;
    },
  );
  await Promise.all([store.want(0, 25), store.want(0, 5)]);
  expect(asked).toEqual([0, 10, 20]);
  expect([store.get(0), store.get(24), store.get(25)]).toEqual([0, 24, undefined]);
  there = 45;
  store.grow();
  await store.want(0, 30);
  expect(asked).toEqual([0, 10, 20, 20]);
  await store.want(30, 31);
  expect(store.pageCount).toBe(3);
  expect(store.get(0)).toBeUndefined();
});

test("a new search ends the one before, and steps go round", async () => {
  const chosen: number[] = [];
  const search = openSearch({
    find: async (text, fromTurn) =>
      fromTurn === 0
        ? { hits: [{ turn: 0, in: "part", part: 0, at: 0, excerpt: text }], next: 4, cut: false }
        : { hits: [{ turn: 4, in: "part", part: 0, at: 2, excerpt: text }], next: null, cut: false },
    onError: (error) => {
      throw error;
    },
    onChoose: (hit) => chosen.push(hit.turn),
  });
  void search.run("first");
  await search.run("second");
  expect(search.state.value.hits.map(({ excerpt }) => excerpt)).toEqual(["second"]);
  await search.step(1);
  await search.step(1);
  await search.step(1);
  expect(chosen).toEqual([0, 4, 0]);
});

test("a view that was kept by another version falls back key by key", () => {
  expect(readView({ turn: 7, cell: -1, mode: "film", exact: "yes" })).toMatchObject({
    turn: 7,
    cell: 0,
    mode: "chat",
    exact: false,
  });
});
