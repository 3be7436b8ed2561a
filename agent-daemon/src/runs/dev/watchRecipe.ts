// Tells when a recipe's files are saved: once for a burst of changes, never for what a run writes.
import { watch } from "node:fs";
import { sep } from "node:path";

const passedOver = new Set(["node_modules", "runs", ".git", ".rollscope"]);
/** Editors write a file in several steps. */
const settle = 80;

/** Calls `changed` after each save in the folder, until the returned function is called. */
export function watchRecipe(folder: string, changed: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(folder, { recursive: true }, (_event, name) => {
    const first = name?.split(sep)[0] ?? "";
    if (passedOver.has(first) || !/\.(ts|js|mjs|json|jsonl|ya?ml)$/.test(name ?? "")) return;
    clearTimeout(timer);
    timer = setTimeout(changed, settle);
  });
  // A folder that is removed ends its watch; the next round says that the recipe is gone.
  watcher.on("error", changed);
  return () => {
    clearTimeout(timer);
    watcher.close();
  };
}
