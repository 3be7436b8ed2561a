// The product as a person installs it: what `npm run package` has written to build/package.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TemporaryHome } from "./temporaryHome.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(repository, "package.json"), "utf8")) as { version: string };

/** The extension's file. */
export function productVsix(): string {
  return packaged(`rollscope-${version}.vsix`);
}

/** Unpacks the payload to where the extension looks for it in a home, and returns that folder. */
export function installPayload(home: TemporaryHome): string {
  const folder = join(home.path, ".rollscope", "payload", version);
  mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["-xf", packaged(`rollscope-${process.platform}-${process.arch}.tar`), "-C", folder]);
  return folder;
}

function packaged(name: string): string {
  const file = join(repository, "build", "package", name);
  if (!existsSync(file)) throw new Error(`${name} is not packed; run npm run package`);
  return file;
}
