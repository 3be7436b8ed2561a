// What is written about the editor is whole: every command, setting and key has its line, every picture that is shown exists, and
// both languages of the README say the same.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { dashboardWords } from "../../webview/dashboard/words.ts";
import { inspectorWords } from "../../webview/inspector/words.ts";
import { chartKeys } from "../../webview/shared/chartKeys.ts";
import { language } from "../../webview/shared/text.ts";
import { sharedWords } from "../../webview/shared/words.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (file: string) => readFileSync(join(root, file), "utf8");
const manifest = JSON.parse(read("package.json")) as {
  contributes: {
    commands: { title: string }[];
    views: Record<string, { name: string }[]>;
    configuration: { properties: Record<string, unknown> };
    customEditors: { selector: { filenamePattern: string }[] }[];
  };
};
const english = JSON.parse(read("package.nls.json")) as Record<string, string>;
const named = (text: string) => english[/^%(.+)%$/.exec(text)?.[1] ?? ""] ?? text;
/** Lines of tables, by the text of their first cell. */
const rows = (text: string) => new Set([...text.matchAll(/^\| (.+?) \|/gm)].map(([, first]) => first!));

const pictures = (text: string) =>
  [...text.matchAll(/!\[([^\]]*)\]\(([^)]+)\)/g)].map(([, alt, path]) => ({ alt, path }));

describe("docs/EDITOR.md", () => {
  const text = read("docs/EDITOR.md");
  const lines = rows(text);

  it("has a line for every command, setting and view", () => {
    const { commands, configuration, views } = manifest.contributes;
    const wanted = [
      ...commands.map(({ title }) => named(title)),
      ...Object.keys(configuration.properties).map((name) => `\`${name}\``),
      ...Object.values(views)
        .flat()
        .map(({ name }) => named(name)),
    ];
    expect(wanted.length).toBeGreaterThan(25);
    expect(wanted.filter((name) => !lines.has(name))).toEqual([]);
  });

  it("names the files that open in the inspector", () => {
    const patterns = manifest.contributes.customEditors.flatMap(({ selector }) => selector);
    for (const { filenamePattern } of patterns) expect(text).toContain(`\`${filenamePattern}\``);
  });

  it("has every key of a chart", () => {
    const names: Readonly<Record<string, string>> = {
      ArrowLeft: "Left",
      ArrowRight: "Right",
      " ": "Space",
      "-": "−",
      "=": "+",
    };
    const table = /\| Key, on a chart [\s\S]*?\n\n/.exec(text)![0];
    for (const key of Object.keys(chartKeys)) expect(table).toContain(names[key] ?? key);
  });

  it("has every key of the inspector as its own help lists them, and every number by its name", () => {
    for (const [keys] of inspectorWords().keys) expect([...lines]).toContain(keys);
    const table = /\| Number [\s\S]*?\n\n/.exec(text)![0];
    const words = (name: string) => name.replace(/^trainer's, /, "").split(" as ")[0]!;
    for (const [column, name] of Object.entries(inspectorWords().columns)) {
      if (column !== "id") expect(table, name).toContain(words(name));
    }
  });

  it("has every chart of the dashboard", () => {
    const words = dashboardWords();
    for (const name of [words.loss, words.reward, words.klReference, words.mismatch, words.lengths, words.throughput])
      expect([...lines]).toContain(name);
    for (const name of [words.entropy, words.gradientNorm, words.staleness, words.waste]) expect(text).toContain(name);
  });
});

describe("pictures", () => {
  const documents = ["README.md", "README.zh-CN.md", "docs/EDITOR.md"];

  it.each(documents)("of %s exist, are described, and are small enough to load", (file) => {
    const shown = pictures(read(file));
    expect(shown.length).toBeGreaterThan(3);
    for (const { alt, path } of shown) {
      const picture = join(root, dirname(file), path!);
      expect(existsSync(picture), path).toBe(true);
      expect(statSync(picture).size, path).toBeLessThan(250_000);
      expect(alt!.length, path).toBeGreaterThan(10);
    }
  });

  it("are each shown somewhere, in a dark and in a light theme", () => {
    const shown = documents.flatMap((file) => pictures(read(file)).map(({ path }) => join(dirname(file), path!)));
    expect(readdirSync(join(root, "docs/pictures")).filter((name) => !shown.includes(`docs/pictures/${name}`))).toEqual(
      [],
    );
    for (const kind of ["dark", "light"]) expect(shown.filter((path) => path.includes(`-${kind}.`))).not.toEqual([]);
  });
});

describe("README.md and README.zh-CN.md", () => {
  const texts = [read("README.md"), read("README.zh-CN.md")] as const;
  const both = (part: (text: string) => unknown) => expect(part(texts[1])).toEqual(part(texts[0]));

  it("have the same headings, tables and lists in the same order", () => {
    both((text) =>
      [...text.replaceAll(/^```[\s\S]*?^```/gm, "```").matchAll(/^(#+ |\||- |```)/gm)].map(([mark]) => mark),
    );
  });

  it("have the same commands and code, but for comments", () => {
    both((text) => [...text.matchAll(/^```[\s\S]*?^```/gm)].map(([block]) => block.replaceAll(/ +# .*$/gm, "")));
    both((text) => [...text.matchAll(/^\| `([^|]+)` \|/gm)].map(([, command]) => command));
  });

  it("show the same pictures and lead to the same places", () => {
    both((text) => pictures(text).map(({ path }) => path));
    both((text) => [...text.matchAll(/(?<!!)\[[^\]]*\]\(([^)]+)\)/g)].map(([, path]) => path).slice(1));
  });

  it("are each written in their own language, and lead to the other", () => {
    expect(texts[0]).toContain("](README.zh-CN.md)");
    expect(texts[1]).toContain("](README.md)");
    const prose = texts[1].replaceAll(/^```[\s\S]*?^```/gm, "");
    const lines = prose.split("\n").filter((line) => /[A-Za-z]/.test(line) && !/^[\s|-]*$/.test(line));
    const untranslated = lines.filter((line) => !/\p{Script=Han}/u.test(line));
    expect(untranslated.filter((line) => !/^# Rollscope$|^\[English\]|^`rollscope/.test(line))).toEqual([]);
  });
});

describe("what the pages say", () => {
  afterEach(() => {
    language.value = "en";
  });

  it.each([
    ["dashboard", dashboardWords],
    ["inspector", inspectorWords],
    ["both pages", sharedWords],
  ] as const)("is Chinese where the editor is, in all texts of the %s", (_, words) => {
    language.value = "en";
    const before = texts(words());
    language.value = "zh-cn";
    const after = texts(words());
    expect(after.map(([path]) => path)).toEqual(before.map(([path]) => path));
    expect(before.length).toBeGreaterThan(5);
    const untranslated = after.filter(
      ([path, text]) => /[A-Za-z]{2}/.test(text) && !/\p{Script=Han}/u.test(text) && !path.startsWith("keys"),
    );
    expect(untranslated).toEqual([]);
  });

  /** All plain texts of a table of words, with their place. */
  function texts(value: unknown, path = ""): [string, string][] {
    if (typeof value === "string") return [[path, value]];
    if (typeof value !== "object" || value === null) return [];
    return Object.entries(value).flatMap(([key, inside]) => texts(inside, path === "" ? key : `${path}.${key}`));
  }
});
