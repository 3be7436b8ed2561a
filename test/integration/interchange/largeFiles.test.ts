// The sizes of docs/EDITOR.md: 10,000 turns in 127 MB, whatever the container. First turns long before the index, bounded memory.
import { rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openTrajectoryFile } from "../../../agent-daemon/src/store/interchange/openTrajectoryFile.ts";
import { type LargeForm, largeText, writeLargeTrajectory } from "../../support/largeTrajectory.ts";
import { temporaryFile } from "../../support/openedFiles.ts";

const turns = 10_000;
const bytes = 127e6;
/** Machines are shared: what is promised for a quiet one may take so many times as long. */
const patience = 3;
const written: string[] = [];

afterAll(() => {
  for (const path of written) rmSync(dirname(path), { recursive: true, force: true });
});

function text(part: unknown): string {
  return (part as { text: string }).text;
}

describe("a file of 127 MB with one trajectory of 10,000 turns", () => {
  const forms: LargeForm[] = ["chat line", "session lines", "document"];
  it.each(forms)("%s: first turns, index and any turn come in time, in bounded memory", async (form) => {
    const path = writeLargeTrajectory(form, turns, bytes);
    written.push(path);
    expect(statSync(path).size).toBeGreaterThan(120e6);
    const before = performance.now();
    let most = 0;
    const progress: number[] = [];
    const file = await openTrajectoryFile(path, {
      onProgress: ({ done }) => {
        progress.push(done);
        most = Math.max(most, process.memoryUsage().heapUsed);
      },
    });
    const first = await file.turns(0, 0, 5);
    const firstTime = performance.now() - before;
    expect(file.complete).toBe(false);
    expect(first).toHaveLength(5);
    expect(text(first[2]?.parts[0]).startsWith("turn 2:")).toBe(true);
    await file.indexed;
    const indexTime = performance.now() - before;
    expect(file.trajectories()).toHaveLength(1);
    expect(file.trajectories()[0]).toMatchObject({ turnCount: turns, complete: true });
    const click = performance.now();
    const late = await file.turns(0, turns - 3, turns);
    const clickTime = performance.now() - click;
    const shown = text(late[2]?.parts[0]);
    expect(shown).toBe(largeText(turns - 1, shown.length));
    const search = performance.now();
    const found = await file.search(0, `turn ${turns - 1}:`, { limit: 1 });
    const searchTime = performance.now() - search;
    expect(found.hits[0]).toMatchObject({ turn: turns - 1, in: "part", part: 0, at: 0 });
    most = Math.max(most, process.memoryUsage().heapUsed);
    await file.close();
    console.info(
      `${form}: first turns ${firstTime.toFixed(0)} ms, index ${indexTime.toFixed(0)} ms, turn ${clickTime.toFixed(1)} ms, search ${searchTime.toFixed(0)} ms, heap ${(most / 2 ** 20).toFixed(0)} MB`,
    );
    expect(firstTime).toBeLessThan(2000 * patience);
    expect(indexTime).toBeLessThan(15_000 * patience);
    expect(clickTime).toBeLessThan(300 * patience);
    expect(most).toBeLessThan(256 * 2 ** 20);
    expect(progress.at(-1)).toBe(statSync(path).size);
  });

  it("closing ends the indexing at once", async () => {
    const path = writeLargeTrajectory("document", turns, bytes);
    written.push(path);
    const file = await openTrajectoryFile(path);
    await file.close();
    await expect(file.indexed).rejects.toMatchObject({ code: "IMPORT_CANCELLED" });
    expect(file.complete).toBe(false);
  });
});

describe("a list of records of which one is large", () => {
  it("shows its turns before the list was read", async () => {
    const path = writeLargeTrajectory("record list", 1000, 30e6);
    written.push(path);
    const file = await openTrajectoryFile(path);
    expect(await file.turns(0, 0, 3)).toHaveLength(3);
    expect(file.complete).toBe(false);
    await file.indexed;
    expect(file.trajectories()).toMatchObject([{ id: "7/0", turnCount: 1000, complete: true, score: 1 }]);
    await file.close();
  });
});

describe("one line of 2 MB without a space", () => {
  it("comes whole, and found by search", async () => {
    const long = `${"x".repeat(2 << 20)}needle${"y".repeat(1000)}`;
    const file = await openTrajectoryFile(
      temporaryFile(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"${long}"}]}\n`),
    );
    await file.indexed;
    const [, answer] = await file.turns(0, 0, 2);
    expect(text(answer?.parts[0])).toBe(long);
    const { hits } = await file.search(0, "NEEDLE");
    expect(hits).toMatchObject([{ turn: 1, at: 2 << 20 }]);
    await file.close();
  });
});

describe("a trajectory behind a large one", () => {
  it("is waited for while the file is read, and refused when the file has no more", async () => {
    const path = writeLargeTrajectory(
      "chat line",
      1000,
      20e6,
      '{"messages": [{"role": "user", "content": "first"}]}\n',
    );
    written.push(path);
    const file = await openTrajectoryFile(path);
    expect(file.complete).toBe(false);
    const [first] = await file.turns(1, 0, 1);
    expect(text(first?.parts[0]).startsWith("turn 0:")).toBe(true);
    await expect(file.turns(2, 0, 1)).rejects.toMatchObject({ code: "IMPORT_TRAJECTORY_UNKNOWN" });
    expect(file.complete).toBe(true);
    await file.close();
  });
});
