// Lines of the Runs view. Pure.
import type { Advisory } from "../../protocol/advisory.ts";
import type { RunSummary } from "../../protocol/runView.ts";
import { activeAdvisories, runContext, runFacts, runIcon, runLine } from "../runs/describeRun.ts";
import type { TreeLine } from "./treeLine.ts";

const colors: Readonly<Record<string, string>> = {
  running: "charts.blue",
  completed: "charts.green",
  failed: "charts.red",
  crashed: "charts.red",
  paused: "charts.yellow",
};

const severities = {
  note: { icon: "info", color: "charts.blue" },
  warning: { icon: "warning", color: "charts.yellow" },
  severe: { icon: "error", color: "charts.red" },
} as const;

export function runLines(runs: readonly RunSummary[]): TreeLine[] {
  return runs.map((run) => {
    const children = [...advisoryLines(run), ...errorLines(run)];
    const color = colors[run.status];
    return {
      id: run.folder,
      label: run.recipe,
      description: runLine(run),
      icon: runIcon(run.status),
      ...(color === undefined ? {} : { color }),
      tooltip: runFacts(run),
      context: runContext(run),
      children,
      folder: run.folder,
    };
  });
}

function advisoryLines(run: RunSummary): TreeLine[] {
  return activeAdvisories(run).map((advisory, index) => ({
    id: `${run.folder}#advisory-${index}-${advisory.kind}`,
    label: advisory.sentence,
    ...severities[advisory.severity],
    tooltip: [advisory.sentence, ...advisory.causes],
    command: { id: "rollscope.openDashboard", arguments: [{ folder: run.folder, link: advisoryLink(advisory) }] },
  }));
}

function advisoryLink(advisory: Advisory) {
  return advisory.links[0] ?? null;
}

function errorLines(run: RunSummary): TreeLine[] {
  const ended = run.crash ?? run.error;
  if (ended === null) return [];
  return [
    {
      id: `${run.folder}#error`,
      label: ended.message,
      icon: "error",
      color: "charts.red",
      tooltip: [ended.message, ended.next],
      command: { id: "rollscope.showRunLog", arguments: [{ folder: run.folder }] },
    },
    { id: `${run.folder}#next`, label: ended.next, icon: "arrow-right", tooltip: [ended.next] },
  ];
}
