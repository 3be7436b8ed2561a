// Prints what the engine makes of a model's token lists, as JSON. Arguments: model folder, token lists as JSON.
import {
  embeddedInferenceEngine,
  embeddedTrainingEngine,
  openEmbeddedModel,
} from "../../../agent-daemon/src/engines/embedded.ts";
import { rows } from "../../support/batches.ts";

const policy = { kind: "policy" } as const;
const [folder, lists] = process.argv.slice(2);
const sequences = JSON.parse(lists!) as number[][];
const model = await openEmbeddedModel(folder!);
const trainer = embeddedTrainingEngine(model);
const sampler = await embeddedInferenceEngine(model);

const scored: number[][] = [];
for (const tokens of sequences) {
  const { logprobs } = await sampler.score({ tokens: Int32Array.from(tokens), temperature: 1, from: 1 });
  scored.push([...logprobs]);
}
const trained: number[][] = [];
const batches = sequences.map((tokens) => rows([tokens]));
await trainer.accumulate(batches, { logprob: true, entropy: false, value: false }, (index, { logprob }) => {
  trained[index] = [...logprob!.subarray(1)];
  return { logprob: logprob!.map((value) => (Number.isNaN(value) ? 0 : -1)) };
});
const { norm } = await trainer.gradient();
const together: number[] = [];
const whole = [rows(sequences)];
for await (const { scalars } of trainer.forward(whole, { logprob: true, entropy: false, value: false }, policy)) {
  together.push(...scalars.logprob!.filter((value) => !Number.isNaN(value)));
}
process.stdout.write(JSON.stringify({ device: model.info().device, scored, trained, together, norm }));
await sampler.dispose();
model.dispose();
