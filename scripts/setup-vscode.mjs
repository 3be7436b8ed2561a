// Installs the editor and the browser that test:vscode and test:browser drive: code-server from npm, with only the
// native parts built that it needs, and Debian's Chromium. Does nothing, quickly, where that is so already.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheDir } from "./paths.mjs";
import { say, stop } from "./setupLog.mjs";
import { needPrograms } from "./systemPackages.mjs";

const version = "4.100.3";
const home = join(cacheDir, "code-server");
const codeServer = join(home, "node_modules", "code-server");
const vscode = join(codeServer, "lib", "vscode");

const programs = [
  { name: "Chromium", probe: ["chromium", "--version"], packages: ["chromium"] },
  { name: "ripgrep", probe: ["rg", "--version"], packages: ["ripgrep"] },
];

/** Native parts of VS Code's server, and the file that each build leaves. Without one of them the server does not start. */
const builds = [
  { folder: vscode, name: "@vscode/spdlog", leaves: "build/Release/spdlog.node" },
  { folder: vscode, name: "native-watchdog", leaves: "build/Release/watchdog.node" },
  { folder: vscode, name: "@parcel/watcher", leaves: "package.json" },
  { folder: vscode, name: "node-pty", leaves: "build/Release/pty.node" },
  { folder: home, name: "argon2", leaves: "lib/binding/napi-v3/argon2.node" },
];

/** Its output is shown only when the step failed. */
function npm(folder, ...args) {
  const done = spawnSync("npm", [...args, "--no-audit", "--no-fund"], { cwd: folder, encoding: "utf8", env: npmEnv() });
  return { ok: done.status === 0, output: `${done.stdout ?? ""}${done.stderr ?? ""}${done.error?.message ?? ""}` };
}

function npmEnv() {
  const env = { ...process.env, JOBS: "2" };
  // Headers that came with this Node spare node-gyp a download.
  const prefix = dirname(dirname(process.execPath));
  if (env.npm_config_nodedir === undefined && existsSync(join(prefix, "include", "node", "node.h"))) {
    env.npm_config_nodedir = prefix;
  }
  return env;
}

function install(folder, ...packages) {
  const { ok, output } = npm(folder, "install", "--ignore-scripts", "--omit=dev", ...packages);
  if (!ok) stop(`npm install failed.\n${output}`, "check the network and run the command again");
}

function link(target, path) {
  mkdirSync(dirname(path), { recursive: true });
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) symlinkSync(target, path);
}

/** Makes the editor and the browser ready for tests. */
export function setUpEditor() {
  needPrograms(programs);
  const stamp = join(home, ".stamp");
  const recipe = readFileSync(fileURLToPath(import.meta.url));
  const digest = createHash("sha256").update(recipe).update(process.version).digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return;

  say(`install code-server ${version}: the editor that test:vscode drives`);
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "package.json"), '{ "private": true }\n');
  install(home, `code-server@${version}`);
  say("install what its server and its built-in extensions import");
  install(vscode);
  install(join(vscode, "extensions"));
  for (const { folder, name, leaves } of builds) {
    say(`build ${name}`);
    // node-pty's last step fails after the build has worked; what counts is the file.
    const { output } = npm(folder, "rebuild", name);
    if (!existsSync(join(folder, "node_modules", name, leaves))) {
      stop(`${name} was not built.\n${output}`, "mend what the message names and run the command again");
    }
  }
  // VS Code looks for modules in an archive, and for ripgrep where a download would have put it.
  link("node_modules", join(vscode, "node_modules.asar"));
  const ripgrep = spawnSync("sh", ["-c", "command -v rg"], { encoding: "utf8" }).stdout.trim();
  link(ripgrep, join(vscode, "node_modules", "@vscode", "ripgrep", "bin", "rg"));
  writeFileSync(stamp, digest);
  say("the editor is ready");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) setUpEditor();
