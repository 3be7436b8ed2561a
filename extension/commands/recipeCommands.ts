// Commands about recipes: make one, open one.
import { join } from "node:path";
import * as vscode from "vscode";
import { withProgress } from "../notify.ts";
import type { Services } from "../services.ts";
import { pickRecipe } from "./pick.ts";

const templates = [
  {
    label: "$(symbol-operator) GRPO math",
    description: "Groups of answers to small sums, scored by a checker; runs at once on this machine",
    template: "grpo",
    name: "my-grpo",
  },
  {
    label: "$(file) Blank",
    description: "The least that runs: one task, one call, one score",
    template: "blank",
    name: "my-recipe",
  },
] as const;

export async function newRecipe(services: Services, _given: unknown): Promise<string | undefined> {
  const template = await vscode.window.showQuickPick(templates, {
    title: "New Recipe (1 of 3)",
    placeHolder: "What to begin with",
    matchOnDescription: true,
  });
  if (template === undefined) return undefined;
  const name = await vscode.window.showInputBox({
    title: "New Recipe (2 of 3)",
    prompt: "Name of the recipe and of its folder",
    value: template.name,
    validateInput: (text) =>
      /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(text) ? null : "Letters, digits, points, dashes and underscores",
  });
  if (name === undefined) return undefined;
  const parent = await pickParent();
  if (parent === undefined) return undefined;
  const created = await withProgress(`Making ${name}`, (token) =>
    services.connection.request("recipe/create", { template: template.template, folder: parent, name }, token),
  );
  const code = vscode.Uri.file(join(created.folder, "recipe.ts"));
  const configuration = vscode.Uri.file(join(created.folder, "recipe.yaml"));
  await vscode.window.showTextDocument(configuration, { preview: false });
  await vscode.window.showTextDocument(code, { preview: false });
  services.fronts.get("rollscope.recipes")?.refresh();
  return created.folder;
}

/** Folder that the new one is made in. */
async function pickParent(): Promise<string | undefined> {
  const open = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file");
  const other = { label: "$(folder-opened) Other folder…", description: "", folder: null };
  const items = open.map(({ name, uri }) => ({
    label: `$(folder) ${name}`,
    description: uri.fsPath,
    folder: uri.fsPath,
  }));
  const picked =
    items.length === 0
      ? other
      : await vscode.window.showQuickPick([...items, other], {
          title: "New Recipe (3 of 3)",
          placeHolder: "Make it in",
        });
  if (picked === undefined) return undefined;
  if (picked.folder !== null) return picked.folder;
  const chosen = await vscode.window.showOpenDialog({
    title: "Folder to make the recipe in",
    openLabel: "Make It Here",
    canSelectFiles: false,
    canSelectFolders: true,
  });
  return chosen?.[0]?.fsPath;
}

export async function openRecipe(services: Services, given: unknown): Promise<void> {
  const recipe = await pickRecipe(services, given, "Open Recipe");
  if (recipe === undefined) return;
  await vscode.window.showTextDocument(vscode.Uri.file(join(recipe.folder, "recipe.yaml")), { preview: false });
}
