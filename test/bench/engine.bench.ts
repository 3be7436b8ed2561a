// npm run bench engine: the embedded engine beside PyTorch and transformers on the same weights, batches, dtype and
// threads, one after the other in each of five rounds. A ratio above 1 means that the engine is faster.
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import {
  embeddedInferenceEngine,
  embeddedTrainingEngine,
  openEmbeddedModel,
} from "../../agent-daemon/src/engines/embedded.ts";
import { smollm2Path } from "../support/model.ts";
import { generateOnce, trainOnce } from "./engineWork.ts";
import { PyTorchPeer } from "./pytorchPeer.ts";
import { groupRows, median, report, tokenRows } from "./work.ts";

const rounds = Number(process.argv[2] ?? 5);
const shape = { prompts: 8, promptTokens: 96, samples: 8, sampleTokens: 16 };
const flat = { rows: 16, tokens: 112 };
const newTokens = 32;

const folder = mkdtempSync(join(tmpdir(), "rollscope-bench-"));
const threads = availableParallelism();
const model = await openEmbeddedModel(smollm2Path(), { threads });
try {
  const training = embeddedTrainingEngine(model);
  const inference = await embeddedInferenceEngine(model);
  const saved = join(folder, "model");
  await training.save(saved, "weights");
  const { peer, torch } = await PyTorchPeer.open(saved, threads);
  const { vocabularySize } = model.info();

  const flatRows = tokenRows(flat.rows, flat.tokens, vocabularySize, 7);
  const grpoRows = groupRows(shape, vocabularySize);
  const prompts = grpoRows.map((row) => row.slice(0, shape.promptTokens));
  // How each party cuts the batch into micro-batches: 16 rows a pass keeps PyTorch's logits in memory.
  const microRows = 16;
  const options = { budget: 2048, step: true } as const;

  await compareLogprobs(flatRows.slice(0, 2));
  const seconds: Record<string, { engine: number[]; peer: number[] }> = {};
  // Round 0 warms both parties up and is not counted.
  for (let round = 0; round <= rounds; round++) {
    await measure(round, "train_f32_flat_vs_pytorch", {
      engine: () => trainOnce(training, flatRows, { ...options, mode: "packed", wantedFrom: 1 }),
      peer: () => peer.train(flatRows, 1, microRows),
    });
    await measure(round, "train_f32_grpo_vs_pytorch", {
      engine: () => trainOnce(training, grpoRows, { ...options, mode: "tree", wantedFrom: shape.promptTokens }),
      peer: () => peer.train(grpoRows, shape.promptTokens, microRows),
    });
    await measure(round, "generate_f32_vs_transformers", {
      engine: () => generateOnce(inference, prompts, newTokens),
      peer: () => peer.generate(prompts, newTokens),
    });
  }
  const values: Record<string, number> = {};
  for (const [key, times] of Object.entries(seconds)) {
    values[key] = median(times.peer.map((peerSeconds, index) => peerSeconds / times.engine[index]!));
  }
  const tokens = {
    train_f32_flat_vs_pytorch: flat.rows * flat.tokens,
    train_f32_grpo_vs_pytorch: grpoRows.length * grpoRows[0]!.length,
    generate_f32_vs_transformers: prompts.length * newTokens,
  };
  const tokensPerSecond = Object.fromEntries(
    Object.entries(tokens).map(([key, count]) => [
      key,
      {
        engine: Math.round(count / median(seconds[key]!.engine)),
        peer: Math.round(count / median(seconds[key]!.peer)),
      },
    ]),
  );
  peer.dispose();
  await inference.dispose();
  report("engine", values, { rounds, threads, torch, device: model.info().device, tokensPerSecond });

  /** Both parties must compute the same thing, or their times mean nothing. */
  async function compareLogprobs(rows: number[][]): Promise<void> {
    const theirs = await peer.logprobs(rows);
    for (const [index, row] of rows.entries()) {
      const ours = await inference.score({ tokens: Int32Array.from(row), temperature: 1, from: 1 });
      const worst = Math.max(...ours.logprobs.map((value, at) => Math.abs(value - theirs[index]![at]!)));
      if (!(worst < 1e-2)) throw new Error(`log-probabilities differ from PyTorch's by ${worst}`);
    }
  }

  async function measure(
    round: number,
    key: string,
    parties: { engine: () => Promise<{ seconds: number }>; peer: () => Promise<{ seconds: number }> },
  ): Promise<void> {
    const engine = (await parties.engine()).seconds;
    const other = (await parties.peer()).seconds;
    console.log(
      `round ${round} ${key}: engine ${engine.toFixed(2)} s, peer ${other.toFixed(2)} s, ratio ${(other / engine).toFixed(2)}`,
    );
    if (round === 0) return;
    seconds[key] ??= { engine: [], peer: [] };
    seconds[key].engine.push(engine);
    seconds[key].peer.push(other);
  }
} finally {
  model.dispose();
  rmSync(folder, { recursive: true, force: true });
}
