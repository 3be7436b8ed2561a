// A large file with tokens, opened while it is being indexed: what the view knows of it grows to all that the file holds.
import { expect, it, onTestFinished } from "vitest";
import { openFileTrajectory } from "../../../agent-daemon/src/daemon/trajectories/fileTrajectory.ts";
import { openTrajectoryFile } from "../../../agent-daemon/src/store/interchange/openTrajectoryFile.ts";
import { temporaryFile } from "../../support/openedFiles.ts";

const answers = 4000;

/** One trace: a question, then answers of three tokens each. */
function trace(): string {
  const question = { parent: null, message: { role: "user", content: "Go on." }, sampled: false };
  const nodes = Array.from({ length: answers }, (_, index) => ({
    parent: index,
    message: { role: "assistant", content: `answer ${index} ${"x".repeat(4000)}` },
    sampled: true,
    token_ids: [index, 1, 2],
    mask: [true, true, true],
    logprobs: [-0.5, -0.25, -1],
  }));
  return `${JSON.stringify({ version: 1, id: "long", agent: { name: "agent" }, nodes: [question, ...nodes], rewards: { right: 1 } })}\n`;
}

it("counts all tokens of a trajectory that was opened before its file was read to the end", async () => {
  const file = await openTrajectoryFile(temporaryFile(trace(), "traces.jsonl"));
  onTestFinished(() => file.close());
  let told = 0;
  const view = await openFileTrajectory(file, 0, () => told++);
  const early = view.outline();
  await view.indexed();
  const whole = view.outline();
  expect(whole).toMatchObject({ turnCount: answers + 1, tokenCount: 3 * answers, complete: true });
  expect(told).toBe(early.complete ? 0 : 1);
  const last = (await view.turns(answers, answers + 1))[0]!;
  expect(last.tokens).toEqual({ first: 3 * (answers - 1), length: 3 });
  const { arrays } = await view.tokens({ from: 3 * answers - 3, to: 3 * answers, columns: ["id"], row: null });
  expect([...(arrays.get("id") as Int32Array)]).toEqual([answers - 1, 1, 2]);
  expect(early.tokenCount).toBeLessThanOrEqual(3 * answers);
});
