// Makes recipe folders in a temporary folder that is removed when the test ends.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** A recipe that is whole and valid; tests add lines to it. */
export const minimalRecipe = `name: minimal
model:
  source: ./model
data:
  train: tasks.jsonl
objective:
  kind: grpo
  aggregation: token-mean
advantages:
  estimator: group_mean
`;

/** A temporary folder with these files, removed at the end of the test. */
export async function temporaryFolder(files: Readonly<Record<string, string | Uint8Array>> = {}): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "rollscope-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
  return folder;
}
