// The task files of a run by their contents: data order and held-out choice depend on them, so a resume refuses files that
// changed instead of quietly training on other tasks.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import { ensureDataFile } from "../recipes/models.ts";
import type { AttemptEnvironment } from "./environment.ts";

export type DataFile = AttemptEnvironment["data"][number];

/** In the order train, held out; each is the file that loadTasks reads. Errors: those of ensureDataFile. */
export async function hashDataFiles(
  recipeFolder: string,
  { data }: RecipeConfig,
  signal?: AbortSignal,
): Promise<DataFile[]> {
  const names = [data.train, ...(data.heldOut === null ? [] : [data.heldOut])];
  return await Promise.all(
    names.map(async (name) => {
      const file = await ensureDataFile(name, { folder: recipeFolder, signal });
      const hash = createHash("sha256");
      await pipeline(createReadStream(file), hash);
      return { file, sha256: hash.digest("hex") };
    }),
  );
}

/** @throws RUN_NOT_RESUMABLE naming the file that changed */
export function requireSameData(before: readonly DataFile[], now: readonly DataFile[]): void {
  for (const [index, { file, sha256 }] of now.entries()) {
    const earlier = before[index];
    if (earlier === undefined || earlier.sha256 === sha256) continue;
    throw new RollscopeError("RUN_NOT_RESUMABLE", `${file} has changed since the run began.`, {
      next: "Restore the file, or start a new run.",
      at: { path: file },
    });
  }
}
