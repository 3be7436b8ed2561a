// Writes train.jsonl and heldOut.jsonl: a + b with a and b in 5…30. Of the 351 unordered pairs 120 are held out, each asked in
// one order; the others are trained on in both. The same files every time: `node recipes/arithmetic-grpo/makeTasks.mjs`.
import { writeFileSync } from "node:fs";

const low = 5;
const high = 30;
const heldOutPairs = 120;

/** Mulberry32: a small generator with a fixed seed, so that nobody's Math.random decides what is held out. */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function shuffle(items, random) {
  for (let last = items.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [items[last], items[other]] = [items[other], items[last]];
  }
  return items;
}

/** The rows of both files, without their line ends. */
export function makeTasks() {
  const random = randomFrom(2025);
  const pairs = [];
  for (let a = low; a <= high; a++) for (let b = a; b <= high; b++) pairs.push([a, b]);
  shuffle(pairs, random);
  const row = ([a, b]) => JSON.stringify({ id: `${a}+${b}`, a, b });
  const heldOut = pairs.slice(0, heldOutPairs).map(([a, b]) => row(random() < 0.5 ? [a, b] : [b, a]));
  const both = pairs.slice(heldOutPairs).flatMap(([a, b]) =>
    a === b
      ? [[a, b]]
      : [
          [a, b],
          [b, a],
        ],
  );
  return { train: shuffle(both, random).map(row), heldOut };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const { train, heldOut } = makeTasks();
  for (const [name, rows] of Object.entries({ train, heldOut }))
    writeFileSync(new URL(`./${name}.jsonl`, import.meta.url), `${rows.join("\n")}\n`);
}
