// Brings a fresh machine to a working state and does nothing, quickly, where that is so already. Says what it does and
// why. As root it installs missing system packages, otherwise it prints the exact command and stops.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheDir, rootDir } from "./paths.mjs";
import { say, stop } from "./setupLog.mjs";
import { needPrograms } from "./systemPackages.mjs";

/** A program that set-up needs, how to see that it works, and the Debian package that brings it. */
const programs = [
  { name: "Python 3", probe: ["python3", "--version"], packages: ["python3"] },
  { name: "pip", probe: ["python3", "-m", "pip", "--version"], packages: ["python3-pip"] },
  { name: "a C++ compiler", probe: [process.env.CXX ?? "c++", "--version"], packages: ["g++"] },
];

function checkNode() {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < 20) stop(`Node ${process.versions.node} is too old.`, "install Node 20, 22 or 24");
}

function installNodePackages() {
  const lock = readFileSync(join(rootDir, "package-lock.json"));
  const digest = createHash("sha256").update(lock).update(process.version).digest("hex");
  const stamp = join(rootDir, "node_modules", ".rollscope-lock");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return;
  say("install the Node packages that package-lock.json pins");
  const npm = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: rootDir,
    stdio: "inherit",
  });
  if (npm.status !== 0)
    stop("npm ci failed (its message stands above).", "check the network and run the command again");
  writeFileSync(stamp, digest);
}

/** The product's own command fetches the model of the main job and of the tests into the product's cache. */
function fetchModel() {
  const cli = [join(rootDir, "dist", "cli.mjs"), "models"];
  const model = "smollm2-135m-instruct";
  const listed = JSON.parse(execFileSync(process.execPath, [...cli, "list", "--json"], { encoding: "utf8" }));
  if (listed.models.some((entry) => entry.name === model)) return;
  say(`fetch ${model}: the main job trains it`);
  execFileSync(process.execPath, [...cli, "fetch", model], { stdio: ["ignore", "ignore", "inherit"] });
}

/** Runs every step; returns when the checkout can run and test itself. */
export async function setUp() {
  checkNode();
  needPrograms(programs);
  mkdirSync(cacheDir, { recursive: true });
  installNodePackages();
  const { fetchMatrixLibrary } = await import("./matrixLibrary.mjs");
  const { buildNative } = await import("./build-native.mjs");
  const { bundle } = await import("./build.mjs");
  try {
    fetchMatrixLibrary(say);
    await buildNative(say);
    await bundle(say);
    fetchModel();
  } catch (cause) {
    stop(cause.message, "mend what the message names and run the command again; what is done is kept");
  }
  say("ready");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await setUp();
