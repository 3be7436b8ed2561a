// Where tests and benches find the real model, which set-up fetches into the product's cache.
import { join } from "node:path";
import { cacheFolder } from "../../agent-daemon/src/recipes/cacheFolder.ts";

/** SmolLM2-135M-Instruct as GGUF. */
export function smollm2Path(): string {
  return join(cacheFolder(), "models", "smollm2-135m-instruct", "SmolLM2-135M-Instruct.Q4_1.gguf");
}
