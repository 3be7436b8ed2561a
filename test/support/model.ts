// Where tests find the real model that set-up fetches.
import { fileURLToPath } from "node:url";

const modelFile = "../../.cache/models/smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf";

/** SmolLM2-135M-Instruct as GGUF. */
export function smollm2Path(): string {
  return fileURLToPath(new URL(modelFile, import.meta.url));
}
