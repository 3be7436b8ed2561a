// What commands and views are given: one object a window, built in main.ts.
import type * as vscode from "vscode";
import type { ViewId } from "./contributions.ts";
import type { DaemonConnection } from "./daemon/connection.ts";
import type { LauncherSource } from "./daemon/launcherSource.ts";
import type { Recipes } from "./recipes.ts";
import type { Reports } from "./reports.ts";
import type { RunsModel } from "./runs/runsModel.ts";
import type { TrajectoriesView } from "./views/trajectoriesView.ts";
import type { TreeFront } from "./views/treeFront.ts";
import type { Panels } from "./webviews/panels.ts";

export interface Services {
  readonly context: vscode.ExtensionContext;
  readonly log: vscode.LogOutputChannel;
  readonly connection: DaemonConnection;
  readonly launchers: LauncherSource;
  readonly runs: RunsModel;
  readonly recipes: Recipes;
  readonly reports: Reports;
  readonly panels: Panels;
  readonly trajectories: TrajectoriesView;
  readonly fronts: ReadonlyMap<ViewId, TreeFront>;
}
