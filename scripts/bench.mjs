// npm run bench NAME: bundles test/bench/NAME.bench.ts and runs it. A bench that measures peers gets their own Python environment
// first (ignored by git).
// The last line that a bench prints is JSON {"bench", "values", "context"}.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { rootDir } from "./paths.mjs";
import { setUp } from "./setup.mjs";

const name = process.argv[2];
const folder = join(rootDir, "test", "bench");
const benches = readdirSync(folder)
  .filter((file) => file.endsWith(".bench.ts"))
  .map((file) => file.replace(".bench.ts", ""));
if (name === undefined || !benches.includes(name)) {
  console.error(`usage: npm run bench NAME, where NAME is one of: ${benches.join(", ")}`);
  process.exit(2);
}

await setUp();
const peerDir = join(rootDir, ".bench");
const python = join(peerDir, "venv", "bin", "python");

const bundle = join(peerDir, `${name}.mjs`);
const { metafile } = await build({
  entryPoints: [join(folder, `${name}.bench.ts`)],
  outfile: bundle,
  bundle: true,
  platform: "node",
  target: "node20",
  format: "esm",
  sourcemap: "inline",
  external: ["libsql", "esbuild", "*.node"],
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
  logLevel: "warning",
  metafile: true,
});
if (Object.keys(metafile.inputs).some((input) => input.endsWith("pytorchPeer.ts"))) preparePeers();
const outcome = spawnSync(process.execPath, ["--enable-source-maps", bundle, ...process.argv.slice(3)], {
  stdio: "inherit",
  cwd: rootDir,
  env: { ...process.env, ROLLSCOPE_BENCH_PYTHON: python },
});
process.exit(outcome.status ?? 1);

function preparePeers() {
  const requirements = join(folder, "requirements.txt");
  const digest = createHash("sha256").update(readFileSync(requirements)).digest("hex");
  const stamp = join(peerDir, "requirements.sha256");
  if (existsSync(python) && existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return;
  console.log("bench: install the peers into their own environment (about 3 GB)");
  execFileSync("python3", ["-m", "venv", join(peerDir, "venv")], { stdio: "inherit" });
  execFileSync(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements], {
    stdio: "inherit",
  });
  writeFileSync(stamp, digest);
}
