// Where tests find reference values and real data: the environment decides, the folder beside the checkout is the default.

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const shared = fileURLToPath(new URL("../../../shared", import.meta.url));

/** Path inside the folder of reference values (`$ROLLSCOPE_ORACLES`). */
export function oraclesPath(...parts: string[]): string {
  return join(process.env["ROLLSCOPE_ORACLES"] ?? join(shared, "oracles"), ...parts);
}

/** Path inside the folder of real data (`$ROLLSCOPE_DATA`). */
export function dataPath(...parts: string[]): string {
  return join(process.env["ROLLSCOPE_DATA"] ?? join(shared, "data"), ...parts);
}

/** Path inside the folder of facts about other projects (`$ROLLSCOPE_REFERENCE`). */
export function referencePath(...parts: string[]): string {
  return join(process.env["ROLLSCOPE_REFERENCE"] ?? join(shared, "reference"), ...parts);
}
