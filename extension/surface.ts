// Typed ways to the editor's settings and context keys; names come from contributions.ts only. Imports nothing heavy.
import { join } from "node:path";
import * as vscode from "vscode";
import type { ContextKeys, Settings } from "./contributions.ts";

export function readSetting<Name extends keyof Settings>(name: Name): Settings[Name] {
  // package.json declares a default for each, so that there always is a value.
  return vscode.workspace.getConfiguration().get(name) as Settings[Name];
}

export function setContextKey<Name extends keyof ContextKeys>(name: Name, value: ContextKeys[Name]): void {
  void vscode.commands.executeCommand("setContext", name, value);
}

/** Where the person wants runs to be made; null: beside the recipe. */
export function chosenOutputDir(): string | null {
  const chosen = readSetting("rollscope.runs.outputDir").trim();
  return chosen === "" ? null : chosen;
}

/** For what has no recipe of the window beside it: the chosen folder, else `runs` in the window's first one; null: neither is there. */
export function windowOutputDir(): string | null {
  const open = vscode.workspace.workspaceFolders?.[0]?.uri;
  return chosenOutputDir() ?? (open?.scheme === "file" ? join(open.fsPath, "runs") : null);
}
