// Where the files lie that come with Rollscope beside its code: recipes, templates, schema. The same in a checkout, where this is
// agent-daemon/src/recipes, and in a payload, where all code is one file in dist.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { RollscopeError } from "../../../protocol/errors.ts";

/** @throws INSTALLATION_INCOMPLETE */
export function shippedPath(...parts: string[]): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const path = join(folder, ...parts);
    if (existsSync(join(folder, "recipes", "templates")) && existsSync(path)) return path;
    if (folder === dirname(folder)) break;
  }
  throw new RollscopeError("INSTALLATION_INCOMPLETE", `This installation has no ${parts.join("/")}.`, {
    next: "Install Rollscope again.",
    at: { path: parts.join("/") },
  });
}
