// Dequantisation on load against the formats' description: every element type, and the row order of q and k.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEmbeddedModel } from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import { type ExpectedTensor, elementTypes, writeGgufModel } from "../support/ggufModel.ts";

const root = mkdtempSync(join(tmpdir(), "gguf-"));
let model: EmbeddedModel;
let expected: ExpectedTensor[];

beforeAll(async () => {
  expected = writeGgufModel(join(root, "model.gguf"));
  model = await openEmbeddedModel(root);
});
afterAll(() => {
  model.dispose();
  rmSync(root, { recursive: true });
});

test.each(elementTypes.map((type) => type.name))(
  "%s tensors have the values that the format gives them",
  async (type) => {
    const tensors = expected.filter((tensor) => tensor.type === type);
    expect(tensors.length).toBeGreaterThan(0);
    for (const { name, values } of tensors) {
      const read = await model.readTensor(name);
      expect(read.length).toBe(values.length);
      const worst = read.reduce((most, value, i) => Math.max(most, Math.abs(value - (values[i] ?? Number.NaN))), 0);
      const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      expect(worst, name).toBeLessThanOrEqual(3e-7 * largest);
    }
  },
);
