// What a step that was skipped for its gradient leaves behind: the exact micro-batches and cotangents, with which the same
// gradient can be made again under the same weights. Written whole or not at all.
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { deserialize, serialize } from "node:v8";
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { Cotangents, PackedBatch, TrainingEngine } from "../engines/interface.ts";

export interface StepReplay {
  /** Steps behind the weights that the gradient was taken at. */
  readonly policyVersion: number;
  readonly records: readonly string[];
  readonly batches: readonly PackedBatch[];
  readonly cotangents: readonly Cotangents[];
}

const count = z.int().min(0);
const f32 = z.instanceof(Float32Array);
const replaySchema = z.strictObject({
  format: z.literal(1),
  policyVersion: count,
  records: z.array(z.string()),
  batches: z.array(
    z.strictObject({
      tokens: z.instanceof(Int32Array),
      positions: z.array(z.instanceof(Int32Array)),
      nodes: z.array(z.strictObject({ start: count, end: count, parent: z.int().min(-1) })),
      temperature: f32,
      wanted: z.instanceof(Uint8Array),
      routing: z.instanceof(Int16Array).exactOptional(),
    }),
  ),
  cotangents: z.array(
    z.strictObject({ logprob: f32.exactOptional(), entropy: f32.exactOptional(), value: f32.exactOptional() }),
  ),
});

export async function writeReplay(path: string, replay: StepReplay): Promise<void> {
  const partial = `${path}.part`;
  try {
    await writeFile(partial, serialize({ format: 1, ...replay }), { mode: 0o600 });
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

/** @throws TRAINING_REPLAY_INVALID */
export async function readReplay(path: string): Promise<StepReplay> {
  try {
    const { format: _format, ...replay } = replaySchema.parse(deserialize(await readFile(path)));
    return replay;
  } catch (error) {
    throw new RollscopeError("TRAINING_REPLAY_INVALID", `${path} is not a step that can be replayed.`, {
      next: "Name a .replay file of a run's folder that this version of Rollscope wrote.",
      cause: error,
      at: { path },
    });
  }
}

/** Makes the gradient anew; the caller loads the weights before and looks at the gradient after. */
export async function replayGradient(engine: TrainingEngine, replay: StepReplay): Promise<void> {
  const want = { logprob: true, entropy: true, value: replay.cotangents.some(({ value }) => value !== undefined) };
  await engine.accumulate(replay.batches, want, (index) => replay.cotangents[index] ?? {});
}
