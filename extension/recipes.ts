// Recipes that the window offers: those of its folders and the shipped ones. Finds folders by recipe.yaml; never reads recipe code.
import { dirname } from "node:path";
import * as vscode from "vscode";
import type { DaemonResult } from "../protocol/daemonMethods.ts";
import type { DaemonConnection } from "./daemon/connection.ts";

export type Recipe = DaemonResult<"recipes/list">["recipes"][number];

export interface Recipes {
  /** Folders of the workspace with a recipe.yaml, in order of path. */
  readonly folders: () => Promise<string[]>;
  readonly list: () => Promise<readonly Recipe[]>;
  readonly onChange: (listener: () => void) => void;
}

const mostFolders = 500;

export function createRecipes(context: vscode.ExtensionContext, connection: DaemonConnection): Recipes {
  const listeners: (() => void)[] = [];
  const watcher = vscode.workspace.createFileSystemWatcher("**/recipe.yaml");
  const changed = () => {
    for (const listener of listeners) listener();
  };
  context.subscriptions.push(
    watcher,
    watcher.onDidCreate(changed),
    watcher.onDidDelete(changed),
    watcher.onDidChange(changed),
    vscode.workspace.onDidChangeWorkspaceFolders(changed),
  );
  const folders = async () => {
    // Copies of a recipe inside of runs are no recipes of the workspace.
    const files = await vscode.workspace.findFiles("**/recipe.yaml", "{**/node_modules/**,**/runs/**}", mostFolders);
    return files
      .filter((uri) => uri.scheme === "file")
      .map((uri) => dirname(uri.fsPath))
      .sort();
  };
  return {
    folders,
    list: async () => (await connection.request("recipes/list", { folders: await folders() })).recipes,
    onChange: (listener) => void listeners.push(listener),
  };
}

/** Folders below which runs of this window may lie: the window's own, and its recipes'. */
export async function runFolders(recipes: Recipes, outputDir: string | null): Promise<string[]> {
  const open = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file");
  const chosen = outputDir === null ? [] : [outputDir];
  return [...new Set([...open.map(({ uri }) => uri.fsPath), ...(await recipes.folders()), ...chosen])];
}
