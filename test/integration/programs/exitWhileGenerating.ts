// Generates without end and exits in the middle of it. Arguments: model folder, milliseconds until the exit.
import { embeddedInferenceEngine, openEmbeddedModel } from "../../../agent-daemon/src/engines/embedded.ts";
import { randomTokens, requestOf } from "../../support/generated.ts";

const [folder, delay] = process.argv.slice(2);
const model = await openEmbeddedModel(folder!);
const engine = await embeddedInferenceEngine(model);
const signal = new AbortController().signal;
async function generateForEver(record: number): Promise<void> {
  for (let call = 0; ; call++) {
    const tokens = randomTokens(record, 20, model.info().vocabularySize);
    const request = requestOf({ tokens, maxNewTokens: 400, key: { seed: 1, record, call } });
    for await (const _ of engine.generate(request, signal));
  }
}
for (let record = 0; record < 32; record++) void generateForEver(record);
setTimeout(() => process.exit(7), Number(delay));
