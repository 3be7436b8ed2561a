// Records that were imported from other tools' files, as a view reads them: what the file did not say is unknown, not made up.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { OpenTrajectory } from "../../../agent-daemon/src/daemon/trajectories/openTrajectory.ts";
import { openRecordTrajectory } from "../../../agent-daemon/src/daemon/trajectories/recordTrajectory.ts";
import { importRun } from "../../../agent-daemon/src/runs/importRun.ts";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { allDocuments } from "../../../agent-daemon/src/store/pages.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { temporaryFile } from "../../support/openedFiles.ts";

const png = Buffer.from("not really a png");

const messages = [
  { role: "system", content: "Look around." },
  {
    role: "user",
    content: [
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url: `data:image/png;base64,${png.toString("base64")}` } },
      { type: "image_url", image_url: { url: "https://example.org/a.png" } },
    ],
  },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "a", type: "function", function: { name: "describe", arguments: '{"what": "a needle"}' } }],
  },
  { role: "tool", tool_call_id: "a", content: "a needle in the hay" },
  { role: "assistant", content: "b".repeat(3000) },
];

async function open(): Promise<OpenTrajectory> {
  const outputDir = mkdtempSync(join(tmpdir(), "imported-"));
  onTestFinished(() => rmSync(outputDir, { recursive: true, force: true }));
  const file = temporaryFile(`${JSON.stringify({ messages })}\n`, "chat.jsonl");
  const { folder } = await importRun({ files: [file], outputDir, into: null, now: () => 1000 });
  const store = await openSqliteStore(folder.records, { readOnly: true });
  const [record] = await allDocuments(store.records, { run: folder.run });
  const source = {
    folder: folder.path,
    run: folder.run,
    store,
    blobs: await openFileBlobs(folder.blobs),
    config: null,
    text: () => null,
  };
  const trajectory = await openRecordTrajectory(source, record!.id, () => {});
  onTestFinished(async () => {
    await trajectory.dispose();
    await store.dispose();
  });
  return trajectory;
}

it("shows neither a temperature nor tokens that the file does not have", async () => {
  const trajectory = await open();
  const sampled = (await trajectory.turns(0, 100)).filter(({ role }) => role === "assistant");
  expect(sampled).toHaveLength(2);
  for (const turn of sampled) expect(turn).toMatchObject({ temperature: null, tokens: null, promptTokens: null });
});

it("shows the file's images, and says of one that only an address was there", async () => {
  const trajectory = await open();
  const [, user] = await trajectory.turns(0, 100);
  expect(user!.parts.map(({ kind }) => kind)).toEqual(["text", "image", "image"]);
  const handles = user!.parts.flatMap((part) => (part.kind === "image" ? [part.handle] : []));
  const { arrays, extra } = await trajectory.image(handles[0]!);
  expect(Buffer.from(arrays.get("bytes") as Uint8Array)).toEqual(png);
  expect(extra["mediaType"]).toBe("image/png");
  await expect(trajectory.image(handles[1]!)).rejects.toMatchObject({ code: "STORE_NOT_FOUND" });
});

it("finds text in parts, in the names of calls and in their arguments, and says when a turn has more", async () => {
  const trajectory = await open();
  const places = async (text: string) =>
    (await trajectory.search(text, 0, 100)).hits.map(({ turn, in: place, part, at }) => [turn, place, part, at]);
  expect(await places("needle")).toEqual([
    [2, "toolCall", 0, 12],
    [3, "part", 0, 2],
  ]);
  expect(await places("DESCRIBE")).toEqual([[2, "toolName", 0, 0]]);
  const many = await trajectory.search("b", 4, 100);
  expect(many).toMatchObject({ next: null, cut: true });
  expect(many.hits).toHaveLength(1000);
  expect((await trajectory.search("is this", 0, 100)).cut).toBe(false);
});
