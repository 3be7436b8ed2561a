// The documents say what the code does: tables, codes, paths, commands and recipes in them are compared with it.
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { exitOfError } from "../../agent-daemon/src/cli/exitCodes.ts";
import { checkTypes } from "../../agent-daemon/src/recipes/checkTypes.ts";
import { loadConfig } from "../../agent-daemon/src/recipes/loadConfig.ts";
import { type ErrorCode, errorCodes } from "../../protocol/errors.ts";
import { command } from "../support/commandLine.ts";
import { temporaryFolder } from "../support/recipeFolder.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (file: string) => readFileSync(join(root, file), "utf8");
const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
const documents = ["README.md", "README.zh-CN.md", ...pages.map((name) => `docs/${name}`)];

describe("what is written from code", () => {
  it.each(["generate-docs.mjs", "generate-schema.mjs"])("is current: %s has nothing to write", async (script) => {
    await promisify(execFile)(process.execPath, [join(root, "scripts", script), "--check"], { cwd: root });
  });
});

describe("error codes", () => {
  /** All sources that can throw, but for the table itself and those that only match codes. */
  const sources = ["agent-daemon/src", "extension", "webview", "protocol", "native/engine", "native/binding"]
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`),
    )
    .filter((file) => /\.(tsx?|cpp|h)$/.test(file) && !/errors\.ts$|exitCodes\.ts$/.test(file))
    .map(read)
    .join("\n");

  it("are each thrown somewhere", () => {
    const unused = Object.keys(errorCodes).filter((code) => !sources.includes(`"${code}"`));
    expect(unused).toEqual([]);
  });

  it("are all in the table, those of the native engine too", () => {
    const native = [...sources.matchAll(/EngineError\(\s*(?:[^"]*\? )?"([A-Z_]+)"/g)].map((found) => found[1]!);
    expect(native.length).toBeGreaterThan(10);
    expect(native.filter((code) => !Object.hasOwn(errorCodes, code))).toEqual([]);
  });

  it("have a meaning of one sentence and stand in docs/ERRORS.md, and nothing else does", () => {
    const listed = [...read("docs/ERRORS.md").matchAll(/^\| `([A-Z_]+)` \|/gm)].map((found) => found[1]);
    expect(listed).toEqual(Object.keys(errorCodes));
    for (const [code, { meaning }] of Object.entries(errorCodes)) {
      expect(meaning, code).toMatch(/^[^|]+\.$/);
      expect(exitOfError(code as ErrorCode)).not.toBe("ok");
    }
  });
});

describe("paths and links", () => {
  it.each(documents)("in %s lead to files", (file) => {
    const text = read(file).replaceAll(/^```[\s\S]*?^```/gm, "");
    const quoted = [...text.matchAll(/`((?:agent-daemon|native|protocol|recipes|test|scripts|docs|\.ci)\/[^`\s]*)`/g)]
      .map((found) => found[1]!)
      .filter((path) => !/[A-Z*]{4}/.test(path));
    const linked = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map((found) => join(dirname(file), found[1]!));
    const missing = [...quoted, ...linked].filter((path) => !existsSync(join(root, path)));
    expect(missing).toEqual([]);
  });

  it.each(documents)("in %s lead to headings", (file) => {
    const anchors = (path: string) =>
      [...read(path).matchAll(/^#+ (.*)$/gm)].map((found) =>
        found[1]!
          .toLowerCase()
          .replaceAll(/[^\w\- ]/g, "")
          .replaceAll(" ", "-"),
      );
    for (const [, path, anchor] of read(file).matchAll(/\]\(([^)#:]*)#([^)]*)\)/g)) {
      const target = path === "" ? file : join(dirname(file), path!);
      expect(anchors(target), `${target}#${anchor}`).toContain(anchor);
    }
  });
});

describe("docs/CLI.md", () => {
  it("names every command with its options", async () => {
    const text = read("docs/CLI.md");
    const commandsOf = (help: string) =>
      [...help.matchAll(/^ {2}([a-z]+) /gm)].map((found) => found[1]!).filter((name) => name !== "help");
    const optionsOf = (help: string) => [...help.matchAll(/ (--[a-z-]+)(?= |$)/gm)].map((found) => found[1]!);
    const { stdout } = await command("--help");
    const commands = commandsOf(stdout);
    expect(commands.length).toBeGreaterThan(5);
    for (const name of commands) {
      const help = (await command(`${name} --help`)).stdout;
      const below = help.includes("\nCommands:") ? commandsOf(help) : [];
      expect(text, name).toMatch(new RegExp(`^## rollscope ${name}`, "m"));
      for (const inner of below) expect(text).toContain(`\`${name} ${inner}`);
      const helps = [
        help,
        ...(await Promise.all(below.map(async (inner) => (await command(`${name} ${inner} --help`)).stdout))),
      ];
      for (const option of helps.flatMap(optionsOf)) expect(text, `${name} ${option}`).toContain(option);
    }
  });
});

describe("recipes in documents", () => {
  const blocks = documents.flatMap((file) =>
    [...read(file).matchAll(/^```(ts|yaml)\n([\s\S]*?)^```/gm)].map(([, language, code], index) => ({
      place: `${file}, block ${index + 1}`,
      language,
      code: code!,
    })),
  );

  it("have code without type errors", async () => {
    const code = blocks.filter(({ language }) => language === "ts");
    const names = code.map((_, index) => `block${index}.ts`);
    const folder = await temporaryFolder({
      ...Object.fromEntries(names.map((name, index) => [name, code[index]!.code])),
      "recipe.ts": names.map((name) => `import "./${name}";`).join("\n"),
    });
    expect(code.length).toBeGreaterThan(2);
    expect(await checkTypes(join(folder, "recipe.ts"))).toEqual({ kind: "checked", problems: [] });
  });

  it("have configuration without problems", async () => {
    const recipes = blocks.filter(({ language }) => language === "yaml");
    expect(recipes.length).toBeGreaterThan(0);
    for (const { place, code } of recipes) {
      const { problems } = await loadConfig(await temporaryFolder({ "recipe.yaml": code }));
      expect(problems, place).toEqual([]);
    }
  });
});
