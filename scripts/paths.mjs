// Where scripts find things in the checkout.
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const rootDir = fileURLToPath(new URL("..", import.meta.url));
/** Downloads that set-up may delete and fetch again: matrix library, model. */
export const cacheDir = process.env.ROLLSCOPE_SETUP_CACHE ?? join(rootDir, ".cache");
export const nativeBuildDir = join(rootDir, "native", "build");
