// Bytes that the parts of a run's folder take. A file that goes away while it is counted counts as nothing.
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { RunSnapshot } from "../../../../protocol/runView.ts";
import type { RunFolder } from "../../runs/runFolder.ts";

export type DiskUse = NonNullable<RunSnapshot["disk"]>;

export async function diskUseOf(folder: RunFolder): Promise<DiskUse> {
  const store = ["", "-wal", "-shm"].map((ending) => sizeOf(`${folder.records}${ending}`));
  return {
    checkpoints: await sizeBelow(folder.checkpoints),
    store: (await Promise.all(store)).reduce((sum, bytes) => sum + bytes, 0),
    blobs: await sizeBelow(folder.blobs),
  };
}

async function sizeOf(path: string): Promise<number> {
  return await lstat(path).then(
    (found) => (found.isFile() ? found.size : 0),
    () => 0,
  );
}

async function sizeBelow(folder: string): Promise<number> {
  let sum = 0;
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(folder, entry.name);
    sum += entry.isDirectory() ? await sizeBelow(path) : await sizeOf(path);
  }
  return sum;
}
