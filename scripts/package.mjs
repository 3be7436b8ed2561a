// Packs the product into build/package: the extension as rollscope-VERSION.vsix, without native code, and the payload as
// rollscope-PLATFORM.tar, which also lies unpacked beside it. `--with-node` takes this Node along.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { rootDir } from "./paths.mjs";
import { packPayload } from "./payload.mjs";
import { setUp } from "./setup.mjs";
import { say } from "./setupLog.mjs";

const packageDir = join(rootDir, "build", "package");
/** 1 January 1980, the first day that a zip can write down, in seconds since 1970: the date of every file in it. */
const zipDate = "315532800";

/** Returns the file. */
function packExtension() {
  const { version } = JSON.parse(readFileSync(join(rootDir, "package.json"), "utf8"));
  const file = join(packageDir, `rollscope-${version}.vsix`);
  const vsce = join(rootDir, "node_modules", ".bin", "vsce");
  const flags = ["--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links"];
  execFileSync(vsce, ["package", ...flags, "--out", file], {
    cwd: rootDir,
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, SOURCE_DATE_EPOCH: zipDate, TZ: "UTC" },
  });
  return file;
}

async function packageProduct(withNode) {
  await setUp();
  mkdirSync(packageDir, { recursive: true });
  say("pack the extension");
  const files = [packExtension()];
  say("pack the payload");
  files.push(packPayload(packageDir, withNode ? { node: process.execPath } : {}));
  for (const file of files) say(`${file} (${(statSync(file).size / 1e6).toFixed(1)} MB)`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { "with-node": { type: "boolean", default: false } } });
  await packageProduct(values["with-node"]);
}
