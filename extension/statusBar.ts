// The one status bar item: connection, progress of runs, advisories. A click opens what one can do.
import * as vscode from "vscode";
import type { DaemonConnection } from "./daemon/connection.ts";
import { type StatusInput, statusText } from "./runs/describeRun.ts";
import type { RunsModel } from "./runs/runsModel.ts";
import { plainTooltip } from "./views/treeLine.ts";

export function createStatusBar(connection: DaemonConnection, runs: RunsModel): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("rollscope.status", vscode.StatusBarAlignment.Left, 10);
  item.name = "Rollscope";
  item.command = "rollscope.showActions";
  const input = (): StatusInput => {
    const { state } = connection;
    if (state.kind === "connected") return { kind: "connected", runs: runs.all(), version: state.hello.version };
    if (state.kind === "waiting" || state.kind === "failed") return { kind: "trouble", ...state.fault };
    return state.kind === "idle" ? { kind: "idle" } : { kind: "connecting" };
  };
  const update = () => {
    const { text, tooltip, alarming } = statusText(input());
    item.text = text;
    item.tooltip = plainTooltip(tooltip);
    item.accessibilityInformation = { label: ["Rollscope", ...tooltip].join(". "), role: "button" };
    item.backgroundColor = alarming ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  };
  const offs = [connection.onState(update), runs.onChange(update)];
  update();
  item.show();
  return {
    dispose: () => {
      for (const off of offs) off();
      item.dispose();
    },
  };
}
