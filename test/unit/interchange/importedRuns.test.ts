// Files of other tools become records that are read like those of a run, and go out again as they came in.
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { exportRun } from "../../../agent-daemon/src/runs/exportRun.ts";
import { importRun } from "../../../agent-daemon/src/runs/importRun.ts";
import type { RunFolder } from "../../../agent-daemon/src/runs/runFolder.ts";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { loadTrajectory } from "../../../agent-daemon/src/store/loadTrajectory.ts";
import { allDocuments } from "../../../agent-daemon/src/store/pages.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { command } from "../../support/commandLine.ts";
import { readTrajectories, temporaryFile, textOf } from "../../support/openedFiles.ts";
import { dataPath } from "../../support/paths.ts";

const folder = () => mkdtempSync(join(tmpdir(), "imported-"));

async function imported(...files: string[]): Promise<RunFolder> {
  const run = await importRun({ files, outputDir: folder(), into: null, now: () => 1000 });
  expect(run.files.flatMap((file) => file.problems)).toEqual([]);
  return run.folder;
}

async function trajectoriesOf({ records, blobs, run }: RunFolder) {
  const store = await openSqliteStore(records, { readOnly: true });
  try {
    const open = await openFileBlobs(blobs);
    const all = [];
    for (const record of await allDocuments(store.records, { run }))
      all.push(await loadTrajectory(store, open, record.id));
    return all;
  } finally {
    await store.dispose();
  }
}

async function chatOf(run: RunFolder): Promise<string> {
  const { path } = await exportRun(run, "chat", join(folder(), "chat.jsonl"));
  return path;
}

const folders = readdirSync(dataPath(), { withFileTypes: true }).filter(
  (entry) => entry.isDirectory() && entry.name !== "gsm8k",
);
const dataFiles = folders
  .flatMap(({ name }) => readdirSync(dataPath(name)).map((file) => join(name, file)))
  .filter((file) => !/LICENSE|metadata\.json/.test(file));

describe("imported records", () => {
  it.each(dataFiles)("%s: chat export and import again give the same", async (file) => {
    const first = await imported(dataPath(file));
    const once = await chatOf(first);
    const again = await chatOf(await imported(once));
    expect(readFileSync(again, "utf8")).toBe(readFileSync(once, "utf8"));
    const before = await readTrajectories(dataPath(file));
    const after = await readTrajectories(once);
    expect(after.format).toBe("rollscope-chat");
    expect(after.all.map(({ about }) => about.id)).toEqual(before.all.map(({ about }) => about.id));
    for (const [index, { about, turns }] of after.all.entries()) {
      const original = before.all[index]!;
      expect(about.reward).toEqual(original.about.reward);
      expect(about.metadata).toEqual(original.about.metadata);
      expect(about).toMatchObject({
        score: original.about.score,
        task: original.about.task,
        labels: original.about.labels,
      });
      // Items of one answer are one message.
      expect(turns.map(textOf).join("")).toBe(original.turns.map(textOf).join(""));
      expect(turns.flatMap((turn) => turn.toolCalls.map((call) => [call.name, call.arguments]))).toEqual(
        original.turns.flatMap((turn) => turn.toolCalls.map((call) => [call.name, call.arguments])),
      );
    }
  });

  it.each(dataFiles.filter((file) => /verifiers-v1|claude-code|tau-bench|openai-chat.made/.test(file)))(
    "%s: every sampled turn is a call whose request is rebuilt from what it added",
    async (file) => {
      const { all } = await readTrajectories(dataPath(file));
      const stored = await trajectoriesOf(await imported(dataPath(file)));
      expect(stored).toHaveLength(all.length);
      for (const { record, calls, toolEvents } of stored) {
        const { turns, about } = all.find((each) => each.about.id === record.id)!;
        const sampled = turns.filter((turn) => turn.trainable);
        const answered = calls.filter((call) => call.document.message !== null);
        expect(answered).toHaveLength(sampled.length);
        expect(record.stats.turns).toBe(sampled.length);
        expect(toolEvents).toHaveLength(turns.filter((turn) => turn.role === "tool").length);
        const last = calls.at(-1);
        const whole = [...(last?.messages() ?? []), ...(last?.document.message ? [last.document.message] : [])];
        expect(whole.map((message) => message.role)).toEqual(turns.map((turn) => turn.role));
        if (about.columns.includes("id")) {
          const ids = turns.flatMap((turn) => turn.tokens?.ids ?? []);
          const sequence = [...last!.promptTokens(), ...last!.output];
          expect(sequence).toEqual(ids.slice(0, sequence.length));
          expect(record.stats.outputTokens).toBe(
            turns.flatMap((turn) => turn.tokens?.sampled ?? []).filter((mark) => mark === 1).length,
          );
          for (const call of answered) expect(call.logprobs).toHaveLength(call.output.length);
        }
      }
    },
  );

  it("P20: integers beyond 2^53 stay two samples through import, store, view and export", async () => {
    const ids = ["7205759403792793601", "7205759403792793602"];
    const rows = ids.map(
      (id) => `{"id":${id},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"seed":${id}}`,
    );
    const run = await imported(temporaryFile(rows.join("\n")));
    const stored = await trajectoriesOf(run);
    expect(stored.map(({ record }) => record.id)).toEqual(ids);
    expect(stored.map(({ record }) => (record.fields["metadata"] as { seed: bigint }).seed)).toEqual(ids.map(BigInt));
    const text = readFileSync(await chatOf(run), "utf8");
    for (const id of ids) expect(text).toContain(`"seed":${id}`);
    const shown = await command(["inspect", run.path, "--json"]);
    for (const id of ids) expect(shown.stdout).toContain(id);
  });

  it("images are blobs in the store and come out as they came in", async () => {
    const url = `data:image/png;base64,${Buffer.from("not really a png").toString("base64")}`;
    const content = [
      { type: "text", text: "see" },
      { type: "image_url", image_url: { url } },
      { type: "image_url", image_url: { url: "https://example.org/a.png" } },
    ];
    const row = {
      messages: [
        { role: "user", content },
        { role: "assistant", content: "seen" },
      ],
    };
    const run = await imported(temporaryFile(JSON.stringify(row)));
    expect(readFileSync(run.records).includes(Buffer.from(url.slice(30)))).toBe(false);
    const out = JSON.parse(readFileSync(await chatOf(run), "utf8"));
    expect(out.messages).toEqual(row.messages);
  });

  it("P35: NaN rewards are words in the export, which is valid JSON", async () => {
    const run = await imported(temporaryFile('{"input":"q","output":"a","score":NaN,"step":1,"loss":Infinity}'));
    const out = JSON.parse(readFileSync(await chatOf(run), "utf8"));
    expect(out).toMatchObject({ reward: "NaN", rewards: { score: "NaN", loss: "Infinity" } });
  });
});

describe("rollscope import and export", () => {
  it("import several files into a named folder, add to it, list it, inspect it", async () => {
    const into = join(folder(), "mine");
    const first = await command([
      "import",
      dataPath("verl", readdirSync(dataPath("verl"))[0]!),
      "--into",
      into,
      "--json",
    ]);
    expect(first.exit).toBe("ok");
    const second = await command([
      "import",
      temporaryFile('{"messages":[{"role":"user","content":"hi"}]}'),
      "--into",
      into,
      "--json",
    ]);
    expect(second.exit).toBe("ok");
    expect(second.json()).toMatchObject({ path: into, records: 1 });
    const listed = (await command(["list", "--output-dir", join(into, ".."), "--json"])).json() as { runs: unknown[] };
    expect(listed.runs).toMatchObject([{ recipe: "import", status: "completed" }]);
    const records = (await command(["inspect", into, "--json"])).json() as { records: { id: string }[] };
    const rows = (first.json() as { records: number }).records;
    expect(records.records).toHaveLength(rows + 1);
    const shown = await command(["inspect", into, records.records[0]!.id]);
    expect(shown.exit).toBe("ok");
  });

  it("an import with broken rows says which, keeps the rest and ends with a code", async () => {
    const path = temporaryFile('{"messages":[{"role":"user","content":"hi"}]}\n{broken\n');
    const result = await command(["import", path, "--output-dir", folder()]);
    expect(result.exit).toBe("failed");
    expect(result.stderr).toContain(`${path}:2:`);
    expect(result.stdout).toContain("1 trajectories");
  });

  it("a file in no known format leaves no run behind", async () => {
    const out = folder();
    const result = await command(["import", temporaryFile("hello"), "--output-dir", out, "--json"]);
    expect(result.json()).toMatchObject({ error: { code: "IMPORT_FORMAT_UNKNOWN" } });
    expect(readdirSync(out)).toEqual([]);
  });

  it("an archive opens elsewhere with the same records", async () => {
    const run = await imported(
      ...dataFiles.filter((file) => /verifiers|tau-bench|swe-agent/.test(file)).map((file) => dataPath(file)),
    );
    const archive = join(folder(), "run.tar");
    await exportRun(run, "archive", archive);
    const opened = await importRun({ files: [archive], outputDir: folder(), into: null, now: () => 5 });
    expect(opened.folder.run).toBe(run.run);
    const [a, b] = [await trajectoriesOf(run), await trajectoriesOf(opened.folder)];
    const plain = (all: typeof a) =>
      all.map(({ record, task, toolEvents, calls }) => ({
        record,
        task,
        toolEvents,
        calls: calls.map(({ document, output, logprobs }) => ({ document, output, logprobs })),
      }));
    expect(plain(b)).toEqual(plain(a));
    expect(readFileSync(await chatOf(opened.folder), "utf8")).toBe(readFileSync(await chatOf(run), "utf8"));
    await expect(
      importRun({ files: [archive], outputDir: "", into: opened.folder.path, now: () => 5 }),
    ).rejects.toMatchObject({ code: "COMMAND_INVALID" });
  });

  it("a damaged archive, and a tar of something else, leave no run behind", async () => {
    const run = await imported(dataPath(dataFiles.find((file) => file.includes("tau-bench"))!));
    const archive = join(folder(), "run.tar");
    await exportRun(run, "archive", archive);
    const bytes = readFileSync(archive);
    for (const part of [0.2, 0.5, 0.9]) {
      const out = folder();
      const cut = temporaryFile(bytes.subarray(0, Math.floor(bytes.length * part)));
      await expect(importRun({ files: [cut], outputDir: out, into: null, now: () => 5 })).rejects.toMatchObject({
        code: expect.stringMatching(/^IMPORT_/),
      });
      expect(readdirSync(out)).toEqual([]);
    }
    const changed = Buffer.from(bytes);
    changed.write("XXXX", bytes.indexOf('"rollscope": "run"'));
    writeFileSync(archive, changed);
    await expect(importRun({ files: [archive], outputDir: folder(), into: null, now: () => 5 })).rejects.toMatchObject({
      code: "IMPORT_FORMAT_UNKNOWN",
    });
  });

  it("export knows its formats, and says when there is nothing to export", async () => {
    const run = await imported(temporaryFile('{"messages":[{"role":"user","content":"hi"}]}'));
    const wrong = await command(["export", run.path, "--format", "xml", "--json"]);
    expect(wrong.json()).toMatchObject({ error: { code: "COMMAND_INVALID" } });
    const out = join(folder(), "rows.safetensors");
    const none = await command(["export", run.path, "--format", "training", "--out", out, "--json"]);
    expect(none.json()).toMatchObject({ error: { code: "EXPORT_NOTHING" } });
    const chat = await command(["export", run.path, "--out", join(folder(), "chat.jsonl"), "--json"]);
    expect(chat.json()).toMatchObject({ format: "chat", records: 1 });
  });
});
