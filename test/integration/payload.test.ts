// The payload as it is installed: unpacked in an empty folder, in an empty home, with the checkout out of sight.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mountNamespace } from "../support/mountNamespace.ts";
import { tinyModelFiles } from "../support/tinyModelFolder.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "payload-"));
const payload = join(scratch, "installed");
const home = join(scratch, "home");
let archive = "";

interface Manifest {
  readonly version: string;
  readonly contentHash: string;
  readonly files: readonly {
    readonly path: string;
    readonly mode: string;
    readonly bytes: number;
    readonly sha256: string;
  }[];
}

/** As `npm run package` packs it, from what set-up has built. */
function pack(folder: string): string {
  const script = join(repository, "scripts", "payload.mjs");
  return execFileSync(process.execPath, [script, join(scratch, folder)], { encoding: "utf8" }).trim();
}

const sha256 = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");

/** Runs the installed program in the home, where nothing of the checkout can be read. */
function rollscope(args: readonly string[], path = `${dirname(process.execPath)}:${process.env["PATH"]}`) {
  const program = [join(payload, "bin", "rollscope"), ...args];
  const namespace = mountNamespace();
  // Without namespaces the checkout is only unknown to the program, which the test below makes sure of.
  const hidden =
    namespace === null
      ? program
      : [
          ...namespace,
          "/bin/sh",
          "-c",
          `mount -t tmpfs none "$0" && PATH="$1" && shift && exec "$@"`,
          repository,
          path,
        ].concat(program);
  const done = spawnSync(hidden[0] as string, hidden.slice(1), {
    cwd: home,
    encoding: "utf8",
    env: { PATH: namespace === null ? path : process.env["PATH"], HOME: home },
  });
  return { code: done.status, output: done.stdout, errors: done.stderr };
}

beforeAll(() => {
  mkdirSync(payload);
  mkdirSync(home);
  archive = pack("once");
  execFileSync("tar", ["-xf", archive, "-C", payload]);
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test("the manifest lists every file with its hash, and nothing else is there", () => {
  const manifest = JSON.parse(readFileSync(join(payload, "manifest.json"), "utf8")) as Manifest;
  const here = readdirSync(payload, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(payload.length + 1))
    .filter((path) => path !== "manifest.json");
  expect(manifest.files.map(({ path }) => path)).toEqual(here.sort((a, b) => (a < b ? -1 : 1)));
  const content = createHash("sha256");
  for (const { path, mode, bytes, sha256: wanted } of manifest.files) {
    const file = join(payload, path);
    expect({ path, bytes: statSync(file).size, sha256: sha256(file) }).toEqual({ path, bytes, sha256: wanted });
    expect((statSync(file).mode & 0o777).toString(8)).toBe(mode);
    content.update(`${mode} ${wanted} ${path}\n`);
  }
  expect(manifest.contentHash).toBe(content.digest("hex"));
});

test("the same input gives the same bytes", () => {
  const again = pack("again");
  expect(sha256(again)).toBe(sha256(archive));
  expect(readFileSync(`${archive}.sha256`, "utf8")).toBe(`${sha256(archive)}  ${archive.split("/").at(-1)}\n`);
});

test("no file knows where the checkout lay", () => {
  const place = repository.replace(/\/$/, "");
  const manifest = JSON.parse(readFileSync(join(payload, "manifest.json"), "utf8")) as Manifest;
  expect(manifest.files.filter(({ path }) => readFileSync(join(payload, path)).includes(place))).toEqual([]);
});

test("without the checkout it says its version, makes a recipe, checks it with its types, trains it and lists the run", () => {
  const { version } = JSON.parse(readFileSync(join(payload, "manifest.json"), "utf8")) as Manifest;
  expect(rollscope(["--version"])).toEqual({ code: 0, output: `${version}\n`, errors: "" });

  for (const [name, content] of Object.entries(tinyModelFiles())) {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    writeFileSync(join(home, name), content);
  }
  expect(rollscope(["new", "blank", "words"])).toMatchObject({ code: 0 });
  const settings = ["--model.source=../model", "--training.steps=2", "--sampling.maxNewTokens=8"];
  const checked = rollscope(["check", "words", "--types", "--json", ...settings]);
  expect(checked).toMatchObject({ code: 0, errors: "" });

  const run = rollscope(["run", "words", "--evaluation.atStart=false", ...settings]);
  expect(run.errors).toBe("");
  expect(run.code).toBe(0);
  const { runs } = JSON.parse(rollscope(["list", "--json"]).output) as { runs: unknown };
  expect(runs).toMatchObject([{ status: "completed", step: 2, steps: 2 }]);
});

test("where the system has no Node it starts with one that came along, else it says what is missing", () => {
  const tools = join(scratch, "tools");
  mkdirSync(tools);
  for (const tool of ["readlink", "dirname"]) {
    symlinkSync(execFileSync("/bin/sh", ["-c", `command -v ${tool}`], { encoding: "utf8" }).trim(), join(tools, tool));
  }
  expect(rollscope(["--version"], tools)).toMatchObject({ code: 1, errors: expect.stringContaining("no Node 20") });
  mkdirSync(join(payload, "node", "bin"), { recursive: true });
  symlinkSync(process.execPath, join(payload, "node", "bin", "node"));
  expect(rollscope(["--version"], tools)).toMatchObject({ code: 0, errors: "" });
});
