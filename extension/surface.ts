// Typed ways to the editor's settings and context keys; names come from contributions.ts only. Imports nothing heavy.
import * as vscode from "vscode";
import type { ContextKeys, Settings } from "./contributions.ts";

export function readSetting<Name extends keyof Settings>(name: Name): Settings[Name] {
  // package.json declares a default for each, so that there always is a value.
  return vscode.workspace.getConfiguration().get(name) as Settings[Name];
}

export function setContextKey<Name extends keyof ContextKeys>(name: Name, value: ContextKeys[Name]): void {
  void vscode.commands.executeCommand("setContext", name, value);
}
