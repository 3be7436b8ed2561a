import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  commandIds,
  commands,
  contextKeyNames,
  panelTypes,
  reportLanguage,
  settingNames,
  taskType,
  trajectoryEditorType,
  views,
  walkthroughId,
} from "../../../extension/contributions.ts";

const root = new URL("../../../", import.meta.url);
const read = (name: string) => JSON.parse(readFileSync(new URL(name, root), "utf8"));

interface Command {
  readonly command: string;
  readonly category?: string;
  readonly title: string;
  readonly icon?: string;
}
interface MenuItem {
  readonly command: string;
  readonly when?: string;
}
const manifest = read("package.json");
const contributes = manifest.contributes as {
  readonly commands: Command[];
  readonly menus: Record<string, MenuItem[]>;
  readonly views: Record<string, { id: string; icon: string }[]>;
  readonly viewsContainers: Record<string, { icon: string }[]>;
  readonly viewsWelcome: { view: string; contents: string; when?: string }[];
  readonly configuration: { properties: Record<string, { default: unknown; scope?: string }> };
  readonly customEditors: { viewType: string }[];
  readonly languages: { id: string }[];
  readonly configurationDefaults: Record<string, unknown>;
  readonly taskDefinitions: { type: string }[];
  readonly walkthroughs: {
    id: string;
    steps: { media: { svg: string }; completionEvents: string[]; description: string }[];
  }[];
};
const english = read("package.nls.json") as Record<string, string>;
const chinese = read("package.nls.zh-cn.json") as Record<string, string>;

function strings(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(strings);
}

/** Commands that a text links to. */
const linked = (text: string) => [...text.matchAll(/\(command:([\w.]+)\)/g)].map((match) => match[1]!);

describe("what the extension contributes", () => {
  it("has the commands of the registry and no others, all in the category Rollscope", () => {
    expect(contributes.commands.map(({ command }) => command).sort()).toEqual([...commandIds].sort());
    for (const { category } of contributes.commands) expect(category).toBe("Rollscope");
  });

  it("shows in the palette the commands that can be started there, and hides the others", () => {
    const hidden = contributes.menus["commandPalette"]!.filter(({ when }) => when === "false").map(
      ({ command }) => command,
    );
    const others = commandIds.filter((id) => commands[id].place !== "palette");
    expect(hidden.sort()).toEqual([...others].sort());
  });

  it("names in menus and texts only commands that exist", () => {
    const named = [
      ...Object.values(contributes.menus).flatMap((items) => items.map(({ command }) => command)),
      ...Object.values(english).flatMap(linked),
      ...Object.values(chinese).flatMap(linked),
    ];
    for (const command of named) expect(commandIds).toContain(command);
  });

  it("reads the settings that it declares, each with a default", () => {
    const { properties } = contributes.configuration;
    expect(Object.keys(properties).sort()).toEqual([...settingNames].sort());
    for (const property of Object.values(properties)) expect(property).toHaveProperty("default");
    // A folder must not choose the program that runs.
    expect(properties["rollscope.payload"]!.scope).toBe("machine");
    expect(manifest.capabilities.untrustedWorkspaces.supported).toBe("limited");
    for (const name of manifest.capabilities.untrustedWorkspaces.restrictedConfigurations) {
      expect(settingNames).toContain(name);
    }
  });

  it("has the views of the registry, each with an icon, and says what to do where one is empty", () => {
    const declared = contributes.views["rollscope"]!;
    expect(declared.map(({ id }) => id)).toEqual([...views]);
    for (const { icon } of [...declared, ...contributes.viewsContainers["activitybar"]!]) {
      expect(existsSync(new URL(icon, root))).toBe(true);
    }
    for (const id of views) expect(contributes.viewsWelcome.map(({ view }) => view)).toContain(id);
  });

  it("uses in conditions only context keys that it sets", () => {
    const conditions = strings(contributes).filter((text) => text.includes("rollscope."));
    const whens = [
      ...Object.values(contributes.menus).flatMap((items) => items.map(({ when }) => when ?? "")),
      ...contributes.viewsWelcome.map(({ when }) => when ?? ""),
      ...conditions.filter((text) => text.startsWith("onContext:")),
    ];
    const known: string[] = [...contextKeyNames, ...views];
    for (const when of whens) {
      for (const [key] of when.matchAll(/rollscope\.\w+/g)) expect(known).toContain(key);
    }
  });

  it("declares its panels, editor, tasks, reports and walkthrough under the names that the code uses", () => {
    for (const type of Object.values(panelTypes)) expect(manifest.activationEvents).toContain(`onWebviewPanel:${type}`);
    expect(contributes.customEditors.map(({ viewType }) => viewType)).toEqual([trajectoryEditorType]);
    expect(contributes.taskDefinitions.map(({ type }) => type)).toEqual([taskType]);
    expect(contributes.languages.map(({ id }) => id)).toEqual([reportLanguage]);
    expect(Object.keys(contributes.configurationDefaults)).toEqual([`[${reportLanguage}]`]);
    const [walkthrough] = contributes.walkthroughs;
    expect(walkthrough!.id).toBe(walkthroughId);
    expect(walkthrough!.steps).toHaveLength(4);
    for (const { media, completionEvents } of walkthrough!.steps) {
      const picture = readFileSync(new URL(media.svg, root), "utf8");
      // Colours of the theme only.
      expect(picture).not.toMatch(/#[0-9a-f]{3,8}\b|rgb\(/i);
      expect(completionEvents.length).toBeGreaterThan(0);
    }
  });

  it("has every text in English and in Chinese, and none that nothing uses", () => {
    const used = new Set(strings(manifest).flatMap((text) => /^%(.+)%$/.exec(text)?.[1] ?? []));
    expect(Object.keys(english).sort()).toEqual([...used].sort());
    expect(Object.keys(chinese).sort()).toEqual([...used].sort());
    for (const [key, text] of Object.entries(chinese)) {
      // Without a Chinese word it was left untranslated.
      expect(text, key).toMatch(/\p{Script=Han}/u);
      expect(english[key], key).not.toMatch(/\p{Script=Han}/u);
      expect(linked(text)).toEqual(linked(english[key]!));
    }
  });

  it("activates on nothing that is common but YAML files, and runs where the folder lies", () => {
    expect(manifest.activationEvents).not.toContain("*");
    expect(manifest.activationEvents).not.toContain("onStartupFinished");
    expect(manifest.extensionKind).toEqual(["workspace", "ui"]);
    expect(manifest.engines.vscode).toBe("^1.95.0");
  });
});
