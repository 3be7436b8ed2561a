// The engine with each instruction set that this machine has: what it computes is the reference's every time, and a row's bits
// are its own.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nativeAddon } from "../../agent-daemon/src/engines/embeddedAddon.ts";
import { modelOracles } from "../support/modelOracles.ts";
import { bundleModule } from "../support/moduleProgram.ts";
import { startProgram } from "../support/program.ts";

interface Numbers {
  readonly device: string;
  readonly scored: readonly (readonly number[])[];
  readonly trained: readonly (readonly number[])[];
  /** All lists in one batch. */
  readonly together: readonly number[];
  readonly norm: number;
}

const known = ["sse", "avx2", "avx512"];
const most = nativeAddon().cpu().kernels;
/** On other processors than x86-64 there is one set, which cannot be chosen. */
const sets = known.slice(0, known.indexOf(most) + 1);

let program: Awaited<ReturnType<typeof bundleModule>>;
beforeAll(async () => {
  program = await bundleModule("integration/programs/engineNumbers.ts");
});
afterAll(() => program.remove());

const start = (set: string, dir: string, sequences: readonly (readonly number[])[]) =>
  startProgram(program.script, [dir, JSON.stringify(sequences)], ["env", `ROLLSCOPE_ENGINE_ISA=${set}`]);

describe.each(modelOracles())("$name", ({ dir, expected }) => {
  test.each(sets)("has the reference's numbers with %s", async (set) => {
    const { output, ended } = start(
      set,
      dir,
      expected.sequences.map(({ tokens }) => tokens),
    );
    expect(await ended).toEqual({ code: 0, signal: null, errors: "" });
    const { device, scored, trained, together, norm } = JSON.parse(await output) as Numbers;
    expect(device).toContain(`(${set})`);
    const tolerance = 10 * expected.float32_tolerance["sequences"]!["logprobs"]!;
    for (const [index, { logprobs }] of expected.sequences.entries()) {
      for (const [i, logprob] of logprobs.slice(1).entries()) {
        expect(Math.abs(scored[index]![i]! - logprob!)).toBeLessThanOrEqual(tolerance);
        expect(Math.abs(trained[index]![i]! - logprob!)).toBeLessThanOrEqual(tolerance);
      }
    }
    // Where a row lies in a batch changes none of its bits.
    expect(together).toEqual(trained.flat());
    // The reference's gradient is that of the mean over all predicted tokens.
    const predicted = expected.sequences.reduce((sum, { tokens }) => sum + tokens.length - 1, 0);
    const reference = Object.values(expected.training)[0]!.grad_norm[0]!;
    expect(Math.abs(norm / predicted / reference - 1)).toBeLessThan(1e-4);
  });
});

test("a name that is no instruction set is refused", async () => {
  const { ended } = start("avx1024", modelOracles()[0]!.dir, []);
  const { code, errors } = await ended;
  expect(code).not.toBe(0);
  expect(errors).toContain("ENGINE_UNSUPPORTED");
});
