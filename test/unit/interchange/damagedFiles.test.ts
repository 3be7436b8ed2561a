// Files cut, changed and mistyped at every place: reading them ends, with something readable or with a coded error, never otherwise.
import { readdirSync, readFileSync, statSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openTrajectoryFile } from "../../../agent-daemon/src/store/interchange/openTrajectoryFile.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import { importedTrajectorySchema, importedTurnSchema } from "../../../protocol/importedTrajectory.ts";
import { temporaryFile } from "../../support/openedFiles.ts";
import { dataPath } from "../../support/paths.ts";

/** Reads all that there is; anything but a coded error is a fault. */
async function readAll(contents: string | Uint8Array): Promise<number> {
  try {
    const file = await openTrajectoryFile(temporaryFile(contents));
    let turns = 0;
    try {
      await file.indexed;
      for (const [index, { turnCount }] of file.trajectories().entries()) {
        importedTrajectorySchema.parse(await file.trajectory(index));
        for (const turn of await file.turns(index, 0, turnCount)) {
          importedTurnSchema.parse(turn);
          turns++;
        }
      }
      for (const { code, message, next } of file.problems)
        expect([code, message, next].every((part) => part !== "")).toBe(true);
    } finally {
      await file.close();
    }
    return turns;
  } catch (error) {
    if (!(error instanceof RollscopeError)) throw error;
    expect(error.code).toMatch(/^IMPORT_/);
    expect(error.next).not.toBe("");
    return 0;
  }
}

const dataFiles = readdirSync(dataPath(), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== "gsm8k")
  .flatMap((entry) => readdirSync(dataPath(entry.name)).map((name) => `${entry.name}/${name}`))
  .filter((name) => !name.endsWith("LICENSE") && !name.endsWith("metadata.json"));
/** One of each folder, the smallest, for what is tried many times. */
const smallFiles = [
  ...new Map(
    dataFiles
      .toSorted((a, b) => statSync(dataPath(b)).size - statSync(dataPath(a)).size)
      .map((name) => [`${name.split("/")[0]}.${name.split(".").at(-1)}`, name]),
  ).values(),
];

describe("damaged files", () => {
  it.each(dataFiles)("%s, cut at every fiftieth", async (name) => {
    const bytes = readFileSync(dataPath(name));
    for (let part = 0; part <= 50; part++) await readAll(bytes.subarray(0, Math.floor((bytes.length * part) / 50)));
  });

  it.each(smallFiles)("%s, with bytes changed", async (name) => {
    const bytes = readFileSync(dataPath(name)).subarray(0, 60_000);
    const change = fc.tuple(fc.nat(bytes.length - 1), fc.nat(255));
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 8 }), async (changes) => {
        const damaged = Buffer.from(bytes);
        for (const [at, byte] of changes) damaged[at] = byte;
        await readAll(damaged);
      }),
      { numRuns: 40 },
    );
  });

  it.each(smallFiles.filter((name) => /\.(jsonl|json|traj)$/.test(name)))(
    "%s, with values of another type",
    async (name) => {
      const text = readFileSync(dataPath(name), "utf8");
      const row = name.endsWith("l") ? (text.split("\n")[0] as string) : text;
      const places: [object, string][] = [];
      const value = JSON.parse(row);
      const walk = (inner: unknown) => {
        if (typeof inner !== "object" || inner === null) return;
        for (const [key, next] of Object.entries(inner).slice(0, 12)) {
          places.push([inner, key]);
          walk(next);
        }
      };
      walk(value);
      const others = [null, 7, "text", [], {}, [[{}]], true, { role: 1, content: {} }];
      const step = Math.max(1, Math.floor(places.length / 60));
      for (let at = 0; at < places.length; at += step) {
        const [holder, key] = places[at] as [Record<string, unknown>, string];
        const kept = holder[key];
        for (const other of others) {
          holder[key] = other;
          await readAll(JSON.stringify(value));
        }
        holder[key] = kept;
      }
      expect(await readAll(JSON.stringify(value))).toBeGreaterThan(0);
    },
  );

  it.each([
    ["lists", "[".repeat(200_000)],
    ["objects", '{"a":'.repeat(200_000)],
    [
      "a deep value beside messages",
      `{"messages":[{"role":"user","content":"a"}],"x":${"[".repeat(50_000)}${"]".repeat(50_000)}}`,
    ],
    ["a deep message", `{"messages":[{"role":"user","content":${"[".repeat(50_000)}${"]".repeat(50_000)}}]}`],
    [
      "deep arguments with a long integer",
      `{"messages":[{"role":"user","content":${'{"a":'.repeat(20_000)}7205759403792793601${"}".repeat(20_000)}}]}`,
    ],
  ])("deep nesting of %s ends with a coded error", async (_what, contents) => {
    await readAll(contents);
  });

  it("keys of the language itself are data", async () => {
    const contents =
      '{"messages":[{"role":"user","content":"a","__proto__":{"role":"tool"}}],"__proto__":{"polluted":1},"constructor":2}';
    expect(await readAll(contents)).toBe(1);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("any JSON is read or refused", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.json(),
        fc.constantFrom("messages", "history", "traces", "traj", "conversations", "samples"),
        async (json, key) => {
          await readAll(`{"${key}":${json},"task_id":1,"eval":{},"version":2}\n{"${key}":[${json}]}`);
        },
      ),
      { numRuns: 100 },
    );
  });
});
