import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { readRunEnvironment } from "../../../agent-daemon/src/runs/environment.ts";
import { startHub } from "../../support/hub.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";
import { attemptToyRun, newToyRun, type ToyRun, toyFiles, toyFolder } from "../../support/toyRun.ts";

const rows = Buffer.from(toyFiles["tasks.jsonl"] ?? "");
const two = ["training.steps=2", "evaluation.everySteps=null", "evaluation.atStart=false"];

const dataOf = (run: ToyRun) => readRunEnvironment(run.folder)?.data ?? [];

beforeEach(() => () => vi.unstubAllEnvs());

describe("the task files of a run", () => {
  test("come from a data set of the Hub, and a resume finds the same ones without asking it", async () => {
    const { server, options } = await startHub("owner/rows", { "data/tasks.jsonl": rows }, "datasets");
    vi.stubEnv("HF_ENDPOINT", server.url);
    vi.stubEnv("ROLLSCOPE_CACHE", options.cache);
    const folder = await toyFolder();
    const source = "hf://datasets/owner/rows/data/tasks.jsonl";
    const run = await newToyRun(folder, [...two, `data.train=${source}`]);
    const first = await attemptToyRun(run, {
      onEvent: (event, stops) => {
        if (event.type === "step" && event.step === 1) stops.stop();
      },
    });
    expect(first.end).toMatchObject({ status: "stopped", step: 1, error: null });
    expect(dataOf(run)[0]?.file.startsWith(options.cache)).toBe(true);
    const asked = server.requests.length;
    const second = await attemptToyRun(run, { attempt: 2 });
    expect(second.end).toMatchObject({ status: "completed", step: 2, error: null });
    expect(server.requests.length).toBe(asked);

    const local = await newToyRun(folder, two);
    await attemptToyRun(local);
    expect(dataOf(local)[0]?.sha256).toBe(dataOf(run)[0]?.sha256);
  });

  test("may be named by any path, which starts from the recipe's folder", async () => {
    const folder = await toyFolder();
    const elsewhere = await temporaryFolder({ "tasks.jsonl": rows.toString() });
    await mkdir(join(folder, "more"));
    await writeFile(join(folder, "more", "tasks.jsonl"), rows);
    const hashes = new Set<string | undefined>();
    for (const path of ["more/tasks.jsonl", "./more/../tasks.jsonl", join(elsewhere, "tasks.jsonl")]) {
      const run = await newToyRun(folder, [...two, `data.train=${path}`]);
      expect((await attemptToyRun(run)).end).toMatchObject({ status: "completed", error: null });
      hashes.add(dataOf(run)[0]?.sha256);
    }
    expect(hashes.size).toBe(1);
  });
});
