// Activation and its end, nothing else: registers commands, views, panels, the custom editor and tasks as thin fronts, and returns.
// Whatever they do lies in a second bundle that is loaded when the first of them is used. Must never start a process or read a file.
import * as vscode from "vscode";
import {
  type CommandId,
  commandIds,
  panelTypes,
  reportScheme,
  taskType,
  trajectoryEditorType,
  type ViewId,
  views,
} from "./contributions.ts";
import type { Main } from "./main.ts";
import type { TreeFront } from "./views/treeFront.ts";

type MainBundle = typeof import("./main.ts");

/** What tests read: how long activation took, in milliseconds, and whether the second bundle is loaded. */
export interface ExtensionApi {
  readonly activationMilliseconds: number;
  readonly loaded: () => boolean;
}

let loadedMain: Main | null = null;

export function activate(context: vscode.ExtensionContext): ExtensionApi {
  const begun = performance.now();
  const trees = new Map<ViewId, TreeFront>();
  const reportChanged = new vscode.EventEmitter<vscode.Uri>();
  const main = (): Main => {
    if (loadedMain === null) {
      const bundle = require("./extensionMain.cjs") as MainBundle;
      loadedMain = bundle.createMain(context, { trees, reportChanged });
    }
    return loadedMain;
  };

  for (const id of views) trees.set(id, registerTree(context, id, main));
  for (const id of commandIds) context.subscriptions.push(registerCommand(id, main));
  for (const type of Object.values(panelTypes)) {
    context.subscriptions.push(
      vscode.window.registerWebviewPanelSerializer(type, {
        deserializeWebviewPanel: async (panel, state) => main().restorePanel(panel, state),
      }),
    );
  }
  context.subscriptions.push(
    reportChanged,
    vscode.window.registerCustomEditorProvider(
      trajectoryEditorType,
      {
        openCustomDocument: (uri) => ({ uri, dispose: () => {} }),
        resolveCustomEditor: (document, panel) => main().openFile(document.uri, panel),
      },
      { supportsMultipleEditorsPerDocument: true },
    ),
    vscode.tasks.registerTaskProvider(taskType, {
      provideTasks: () => main().tasks.provide(),
      resolveTask: (task) => main().tasks.resolve(task),
    }),
    vscode.workspace.registerTextDocumentContentProvider(reportScheme, {
      onDidChange: reportChanged.event,
      provideTextDocumentContent: (uri) => main().report(uri),
    }),
    vscode.workspace.onDidOpenTextDocument((document) => {
      if (isRecipe(document)) main();
    }),
  );
  // After this returns: what the window showed before it was closed comes back without being asked for.
  setImmediate(() => {
    const hadRuns = context.workspaceState.get<boolean>("rollscope.activeRuns") === true;
    if (hadRuns || vscode.workspace.textDocuments.some(isRecipe)) main();
  });
  return { activationMilliseconds: performance.now() - begun, loaded: () => loadedMain !== null };
}

export async function deactivate(): Promise<void> {
  await loadedMain?.dispose();
  loadedMain = null;
}

function isRecipe(document: vscode.TextDocument): boolean {
  return /(^|[\\/])recipe\.ya?ml$/.test(document.uri.path);
}

function registerCommand(id: CommandId, main: () => Main): vscode.Disposable {
  return vscode.commands.registerCommand(id, (...given: unknown[]) => main().run(id, given));
}

/** The view is there at once; its lines come from the second bundle as soon as the view is shown. */
function registerTree(context: vscode.ExtensionContext, id: ViewId, main: () => Main): TreeFront {
  const changed = new vscode.EventEmitter<unknown>();
  const view = vscode.window.createTreeView<unknown>(id, {
    showCollapseAll: false,
    canSelectMany: id === "rollscope.runs" || id === "rollscope.trajectories",
    treeDataProvider: {
      onDidChangeTreeData: changed.event,
      getChildren: (element) => main().tree(id).getChildren(element),
      getTreeItem: (element) => main().tree(id).getTreeItem(element),
    },
  });
  context.subscriptions.push(view, changed);
  return { view, refresh: () => changed.fire(undefined) };
}
