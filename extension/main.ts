// Everything behind the fronts of extension.ts: builds the services of the window once, and is the only place that wires them.
import * as vscode from "vscode";
import { checkEnvironment, choosePayload, showActions, showDaemonLog } from "./commands/environmentCommands.ts";
import { folderOf } from "./commands/pick.ts";
import { newRecipe, openRecipe } from "./commands/recipeCommands.ts";
import {
  compareRuns,
  explainZeroLoss,
  exportRun,
  openDashboard,
  pauseRun,
  removeRun,
  resumeRun,
  runRecipe,
  showRunLog,
  stopRun,
} from "./commands/runCommands.ts";
import {
  chooseStep,
  diffTrajectories,
  filterTrajectories,
  importTrajectories,
  openTrajectory,
  openTrajectoryFile,
  sortTrajectories,
} from "./commands/trajectoryCommands.ts";
import { type CommandId, commands, type ViewId, views } from "./contributions.ts";
import { DaemonConnection } from "./daemon/connection.ts";
import { asFault, refuse } from "./daemon/fault.ts";
import { createLauncherSource } from "./daemon/launcherSource.ts";
import { showFault } from "./notify.ts";
import { createRecipes, runFolders } from "./recipes.ts";
import { registerRecipeYaml } from "./recipeYaml/registerRecipeYaml.ts";
import { createReports } from "./reports.ts";
import { createRunsModel, isActive } from "./runs/runsModel.ts";
import type { Services } from "./services.ts";
import { createStatusBar } from "./statusBar.ts";
import { chosenOutputDir, readSetting, setContextKey } from "./surface.ts";
import { createTasks, type Tasks } from "./tasks.ts";
import { faultLines, type MachineState, machineLines } from "./views/machineLines.ts";
import { createPacer } from "./views/pacer.ts";
import { recipeLines } from "./views/recipeLines.ts";
import { runLines } from "./views/runLines.ts";
import { TrajectoriesView } from "./views/trajectoriesView.ts";
import type { TreeFront } from "./views/treeFront.ts";
import { isTreeLine, type TreeLine, treeItem } from "./views/treeLine.ts";
import { hostAnswers } from "./webviews/hostAnswers.ts";
import { createPanels } from "./webviews/panels.ts";

export interface TreeSource {
  readonly getChildren: (element: unknown) => Promise<TreeLine[]>;
  readonly getTreeItem: (element: unknown) => vscode.TreeItem;
}

export interface Fronts {
  readonly trees: ReadonlyMap<ViewId, TreeFront>;
  readonly reportChanged: vscode.EventEmitter<vscode.Uri>;
}

export interface Main {
  /** Shows whatever goes wrong; resolves to what the command gives back. */
  readonly run: (id: CommandId, given: readonly unknown[]) => Promise<unknown>;
  readonly tree: (id: ViewId) => TreeSource;
  readonly tasks: Tasks;
  readonly report: (uri: vscode.Uri) => string;
  readonly restorePanel: (panel: vscode.WebviewPanel, state: unknown) => void;
  readonly openFile: (uri: vscode.Uri, panel: vscode.WebviewPanel) => Promise<void>;
  readonly dispose: () => Promise<void>;
}

/** Milliseconds between two drawings of a view. */
const paces: Readonly<Record<ViewId, number>> = {
  "rollscope.clusters": 1500,
  "rollscope.runs": 500,
  "rollscope.recipes": 500,
  "rollscope.trajectories": 500,
};

type Handlers = { readonly [id in CommandId]: (given: unknown, all: unknown) => unknown };

function createServices(context: vscode.ExtensionContext, fronts: Fronts): Services {
  const log = vscode.window.createOutputChannel("Rollscope", { log: true });
  const { version } = context.extension.packageJSON as { version: string };
  const launchers = createLauncherSource(version, context.extensionPath, () => readSetting("rollscope.payload"));
  const connection = new DaemonConnection({
    version,
    log,
    findLauncher: launchers.find,
    later: (milliseconds, then) => {
      const timer = setTimeout(then, milliseconds);
      return () => clearTimeout(timer);
    },
  });
  const recipes = createRecipes(context, connection);
  const runs = createRunsModel(connection, () => runFolders(recipes, chosenOutputDir()));
  const front = fronts.trees.get("rollscope.trajectories")!;
  const services: Services = {
    context,
    log,
    connection,
    launchers,
    recipes,
    runs,
    reports: createReports(fronts.reportChanged),
    fronts: fronts.trees,
    trajectories: new TrajectoriesView(connection, runs, front.view, front.refresh, context.workspaceState),
    panels: createPanels({ context, connection, log, answerHost: hostAnswers(() => services) }),
  };
  context.subscriptions.push(log, createStatusBar(connection, runs));
  return services;
}

export function createMain(context: vscode.ExtensionContext, fronts: Fronts): Main {
  const services = createServices(context, fronts);
  const { connection, runs, recipes, trajectories, panels } = services;
  let machine: MachineState | null = null;
  let payload = readSetting("rollscope.payload");
  // Runs change many times a second; a list that is drawn that often cannot be read.
  const pacers = new Map(views.map((id) => [id, createPacer(paces[id], () => fronts.trees.get(id)?.refresh())]));
  const refresh = (id: ViewId) => pacers.get(id)?.ask();

  connection.onState((state) => {
    setContextKey("rollscope.connection", state.kind);
    refresh("rollscope.clusters");
    if (state.kind === "connected") {
      void context.globalState.update("daemonLog", state.hello.log);
      refresh("rollscope.recipes");
    }
  });
  connection.on("machine/changed", (state) => {
    machine = state;
    refresh("rollscope.clusters");
  });
  runs.onChange(() => {
    setContextKey("rollscope.hasRuns", runs.all().length > 0);
    void context.workspaceState.update("rollscope.activeRuns", runs.all().some(isActive));
    badge(fronts.trees.get("rollscope.runs")?.view, runs.all().filter(isActive).length);
    refresh("rollscope.runs");
    refresh("rollscope.clusters");
  });
  recipes.onChange(() => {
    refresh("rollscope.recipes");
    if (connection.state.kind === "connected") void runs.lookAgain().catch(() => {});
  });
  context.subscriptions.push(
    fronts.trees.get("rollscope.runs")!.view.onDidChangeSelection(({ selection }) => {
      const folder = selection.length === 1 ? folderOf(selection[0]) : null;
      if (folder === null) return;
      const { place } = trajectories;
      if (place.kind === "run" && place.folder === folder) return;
      trajectories.show({ kind: "run", folder, name: runs.get(folder)?.recipe ?? folder });
    }),
    vscode.workspace.onDidChangeConfiguration((change) => {
      // The editor tells of changes that leave the value as it is, and may learn of a value late.
      const now = readSetting("rollscope.payload");
      if (now !== payload) {
        payload = now;
        const wasUsed = connection.state.kind !== "idle";
        connection.disconnect();
        if (wasUsed) void connection.connect().catch(() => {});
      }
      if (change.affectsConfiguration("rollscope.runs.outputDir")) void runs.lookAgain().catch(() => {});
    }),
  );

  registerRecipeYaml(context, connection);

  const roots: { readonly [id in ViewId]: () => Promise<TreeLine[]> } = {
    "rollscope.clusters": async () => {
      const hello = await connection.connect();
      // A machine that cannot be measured is there all the same.
      machine ??= await connection.request("machine/state", {}).catch((error: unknown) => {
        services.log.warn(`machine/state: ${asFault(error).message}`);
        return null;
      });
      return machineLines(hello, machine, runs.all());
    },
    "rollscope.runs": async () => {
      await runs.ready();
      return runLines(runs.all());
    },
    "rollscope.recipes": async () => recipeLines(await recipes.list()),
    "rollscope.trajectories": () => trajectories.lines(),
  };

  const tree = (id: ViewId): TreeSource => ({
    getTreeItem: (element) => treeItem(element as TreeLine),
    getChildren: async (element) => {
      if (isTreeLine(element)) return [...(element.children ?? [])];
      try {
        return await roots[id]();
      } catch (error) {
        // While the daemon is away one view says why; the others offer the check.
        const tell = id === "rollscope.clusters" || connection.state.kind === "connected";
        return tell ? faultLines(id, asFault(error)) : [];
      }
    },
  });

  const handlers: Handlers = {
    "rollscope.runRecipe": (given) => runRecipe(services, given, false),
    "rollscope.debugRecipe": (given) => runRecipe(services, given, true),
    "rollscope.newRecipe": (given) => newRecipe(services, given),
    "rollscope.checkEnvironment": () => checkEnvironment(services),
    "rollscope.stopRun": (given) => stopRun(services, given),
    "rollscope.pauseRun": (given) => pauseRun(services, given),
    "rollscope.resumeRun": (given) => resumeRun(services, given),
    "rollscope.openDashboard": (given) => openDashboard(services, given),
    "rollscope.compareRuns": (given, all) => compareRuns(services, given, all),
    "rollscope.openTrajectory": (given) => openTrajectory(services, given),
    "rollscope.diffTrajectories": (given, all) => diffTrajectories(services, given, all),
    "rollscope.importTrajectories": (given) => importTrajectories(services, given),
    "rollscope.exportRun": (given) => exportRun(services, given),
    "rollscope.explainZeroLoss": (given) => explainZeroLoss(services, given),
    "rollscope.showDaemonLog": () => showDaemonLog(services),
    "rollscope.showRunLog": (given) => showRunLog(services, given),
    "rollscope.removeRun": (given) => removeRun(services, given),
    "rollscope.openRecipe": (given) => openRecipe(services, given),
    "rollscope.refresh": async () => {
      await runs.lookAgain();
      refresh("rollscope.recipes");
      trajectories.reload();
    },
    "rollscope.sortTrajectories": () => sortTrajectories(services),
    "rollscope.filterTrajectories": () => filterTrajectories(services),
    "rollscope.chooseStep": () => chooseStep(services),
    "rollscope.moreTrajectories": () => trajectories.more(),
    "rollscope.showActions": () => showActions(services),
    "rollscope.choosePayload": () => choosePayload(services),
  };

  return {
    run: async (id, [given, all]) => {
      try {
        if (commands[id].needsTrust && !vscode.workspace.isTrusted) refuseUntrusted();
        return await handlers[id](given, all);
      } catch (error) {
        services.log.error(`${id}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
        // Not awaited: a command is over when it failed, not when its message is closed.
        void showFault(error);
        return undefined;
      }
    },
    tree,
    tasks: createTasks(services.launchers, recipes),
    report: (uri) => services.reports.text(uri),
    restorePanel: (panel, state) => panels.restore(panel, state),
    openFile: async (uri, panel) => {
      try {
        await openTrajectoryFile(services, uri, panel);
      } catch (error) {
        void showFault(error);
      }
    },
    dispose: async () => {
      for (const pacer of pacers.values()) pacer.dispose();
      trajectories.dispose();
      runs.dispose();
      connection.dispose();
    },
  };
}

function refuseUntrusted(): never {
  return refuse(
    "WORKSPACE_UNTRUSTED",
    "This folder is not trusted, so its recipes can be looked at but not run.",
    "Trust the folder with Workspaces: Manage Workspace Trust.",
  );
}

function badge(view: vscode.TreeView<unknown> | undefined, active: number): void {
  if (view === undefined) return;
  view.badge = active === 0 ? undefined : { value: active, tooltip: active === 1 ? "1 run" : `${active} runs` };
}
