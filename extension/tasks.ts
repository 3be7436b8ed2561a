// Tasks of type `rollscope`: a recipe run or checked in the terminal, with its problems in the Problems view. VS Code itself refuses them in an
// untrusted folder.
import { basename, isAbsolute, join } from "node:path";
import * as vscode from "vscode";
import { taskType } from "./contributions.ts";
import type { LauncherSource } from "./daemon/launcherSource.ts";
import type { Recipes } from "./recipes.ts";
import { type RecipeTask, readRecipeTask, taskArguments, taskCommands } from "./recipeTask.ts";

interface RunTask extends vscode.TaskDefinition, RecipeTask {}

export interface Tasks {
  readonly provide: () => Promise<vscode.Task[]>;
  readonly resolve: (task: vscode.Task) => Promise<vscode.Task | undefined>;
}

export function createTasks(launchers: LauncherSource, recipes: Recipes): Tasks {
  const make = async (definition: RunTask, scope: vscode.WorkspaceFolder | vscode.TaskScope, name: string) => {
    const base = typeof scope === "object" ? scope.uri.fsPath : undefined;
    const recipe =
      isAbsolute(definition.recipe) || base === undefined ? definition.recipe : join(base, definition.recipe);
    const { payload, node } = await launchers.find();
    const args = taskArguments(recipe, definition);
    const [file, given] =
      payload.kind === "command" || node === null ? [payload.file, args] : [node.file, [payload.file, ...args]];
    const execution = new vscode.ProcessExecution(file, given, {
      ...(base === undefined ? {} : { cwd: base }),
      env: { ...node?.environment },
    });
    const task = new vscode.Task(definition, scope, name, "Rollscope", execution, ["$rollscope"]);
    task.detail = recipe;
    task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated };
    return task;
  };
  return {
    provide: async () => {
      const folders = await recipes.folders();
      return await Promise.all(
        folders.flatMap((folder) => {
          const scope = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(folder)) ?? vscode.TaskScope.Workspace;
          return taskCommands.map((command) =>
            make({ type: taskType, command, recipe: folder }, scope, `${command} ${basename(folder)}`),
          );
        }),
      );
    },
    resolve: async (task) => {
      const read = readRecipeTask(task.definition);
      if (read === null) return undefined;
      const scope = task.scope === undefined ? vscode.TaskScope.Workspace : task.scope;
      return await make({ ...read, type: taskType }, scope, task.name);
    },
  };
}
