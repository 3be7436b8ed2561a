import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { devCommand } from "../../../agent-daemon/src/cli/commands/dev.ts";
import { createOutput } from "../../../agent-daemon/src/cli/output.ts";
import { type DevRound, DevRounds } from "../../../agent-daemon/src/runs/dev/devRounds.ts";
import { embeddedEngines } from "../../../agent-daemon/src/runs/embeddedEngines.ts";
import { systemClock } from "../../../agent-daemon/src/sampling/clock.ts";
import { minimalRecipe, temporaryFolder } from "../../support/recipeFolder.ts";
import { tinyModelFiles } from "../../support/tinyModelFolder.ts";

const code = `import { defineRecipe } from "rollscope/recipe";
export default defineRecipe<{ q: string }, number>({
  async rollout(task, agent) {
    await agent.chat({ messages: [{ role: "user", content: task.payload.q }] });
    return 7;
  },
  evaluate({ text, result }) {
    return { score: text.length > 0 ? 0.5 : 0, breakdown: { result } };
  },
});
`;

beforeEach(async () => {
  vi.stubEnv("ROLLSCOPE_CACHE", await temporaryFolder());
  return () => vi.unstubAllEnvs();
});

async function recipeFolder() {
  const folder = await temporaryFolder({
    "recipe.yaml": `${minimalRecipe}sampling: { maxNewTokens: 6 }\ntraining: { tokenBudget: 512 }\n`,
    "recipe.ts": code,
    "tasks.jsonl": '{"id":"a","q":"one"}\n{"id":"b","q":"two"}\n{"id":"c","q":"three"}\n',
    ...tinyModelFiles(),
  });
  return { folder, save: (text: string) => writeFileSync(join(folder, "recipe.ts"), text) };
}

describe("the inner loop", () => {
  it("samples, judges again when only evaluate changed, and samples anew when rollout did", async () => {
    const { folder, save } = await recipeFolder();
    const rounds = new DevRounds({
      recipe: folder,
      check: {},
      openEngines: embeddedEngines,
      clock: systemClock,
      signal: new AbortController().signal,
    });
    onTestFinished(() => rounds.dispose());
    const first = await rounds.next();
    expect(first).toMatchObject({ round: 1, did: "sampled", problems: [] });
    expect(first.samples.map(({ task, sample }) => `${task}${sample}`)).toEqual(["a0", "a1", "b0", "b1"]);
    expect(first.samples.every(({ breakdown, before }) => breakdown["result"] === 7 && before === null)).toBe(true);

    save(code.replace("? 0.5", "? 0.25 + 0.5"));
    const again = await rounds.next();
    expect(again.did).toBe("scored again");
    expect(again.samples.map(({ text }) => text)).toEqual(first.samples.map(({ text }) => text));
    expect(again.samples[0]).toMatchObject({ score: 0.75, breakdown: { result: 7 }, before: { score: 0.5 } });

    save(code.replace("content: task.payload.q", 'content: "other " + task.payload.q'));
    const anew = await rounds.next();
    expect(anew.did).toBe("sampled");
    expect(anew.samples.some(({ before, text }) => before !== null && before.text !== text)).toBe(true);

    save(code.replace("text.length > 0", "text.size > 0"));
    const wrong = await rounds.next();
    expect(wrong).toMatchObject({ did: "nothing", samples: [] });
    expect(wrong.problems[0]?.sentence).toContain("'size' does not exist");

    save(code.replace("return { score", 'if (text !== "") throw new Error("no"); return { score'));
    expect((await rounds.next()).samples[0]?.error).toMatch(/SAMPLING_EVALUATE_FAILED.*no/);
    for (const { times } of [first, again, anew]) expect(times.total).toBeLessThan(10_000);
  });

  it("begins a round after a save, prints one document each, and ends on Ctrl-C", async () => {
    const { folder, save } = await recipeFolder();
    const stdout = new PassThrough();
    const stderr = new PassThrough();
    let interrupt = () => {};
    const command = devCommand(
      folder,
      { profile: null, overrides: [], outputDir: null, environment: {}, model: null },
      {
        version: "0.0.0",
        invocation: "rollscope",
        clock: systemClock,
        openEngines: embeddedEngines,
        onSignal: (handler) => {
          interrupt = handler;
          return () => {};
        },
        stdout,
      },
      createOutput({ stdout, stderr, environment: {} }, true),
    );
    const documents: DevRound[] = [];
    let text = "";
    for await (const chunk of stdout) {
      text += String(chunk);
      if (!text.endsWith("\n}\n")) continue;
      documents.push(JSON.parse(text) as DevRound);
      text = "";
      if (documents.length === 1) save(code.replace("? 0.5", "? 1"));
      else break;
    }
    interrupt();
    expect(await command).toBe("ok");
    expect(documents.map(({ round, did }) => [round, did])).toEqual([
      [1, "sampled"],
      [2, "scored again"],
    ]);
    expect(documents[1]!.samples[0]).toMatchObject({ score: 1, before: { score: 0.5 } });
  });
});
