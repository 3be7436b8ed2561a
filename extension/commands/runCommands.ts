// Commands about runs: start, debug, stop, pause, resume, look at, compare, export, explain, forget.
import { basename, dirname } from "node:path";
import * as vscode from "vscode";
import { advisoryLinkSchema } from "../../protocol/advisory.ts";
import { plainTerminalText } from "../../protocol/plainTerminalText.ts";
import type { RunSummary } from "../../protocol/runView.ts";
import { asFault } from "../daemon/fault.ts";
import { debugRun } from "../debugRun.ts";
import { showDone, withProgress } from "../notify.ts";
import { explanationText } from "../reportTexts.ts";
import { isActive } from "../runs/runsModel.ts";
import type { Services } from "../services.ts";
import { chosenOutputDir, readSetting, setContextKey, windowOutputDir } from "../surface.ts";
import { followLink } from "../webviews/hostAnswers.ts";
import { folderOf, pickRecipe, pickRun, pickRuns } from "./pick.ts";

const startOne = "Start one with Rollscope: Run Recipe.";

/** The given argument may be the Uri of a recipe.yaml (title button of its editor). */
function recipeArgument(given: unknown): unknown {
  return given instanceof vscode.Uri ? { folder: dirname(given.fsPath) } : given;
}

export async function runRecipe(services: Services, given: unknown, debug: boolean): Promise<RunSummary | undefined> {
  const recipe = await pickRecipe(services, recipeArgument(given), debug ? "Debug Recipe" : "Run Recipe");
  if (recipe === undefined) return undefined;
  await saveRecipe(recipe.folder);
  const { summary, debug: target } = await withProgress(`Starting ${recipe.name}`, (token) =>
    services.connection.request(
      "run/start",
      {
        recipe: recipe.folder,
        debug,
        // Shipped recipes lie in the payload, where no run belongs.
        outputDir: recipe.shipped ? windowOutputDir() : chosenOutputDir(),
      },
      token,
    ),
  );
  services.runs.accept(summary);
  await showStarted(services, summary);
  if (debug) await debugRun(services, recipe, summary.folder, target);
  return summary;
}

async function saveRecipe(folder: string): Promise<void> {
  const changed = vscode.workspace.textDocuments.filter(
    (document) => document.isDirty && document.uri.scheme === "file" && document.uri.fsPath.startsWith(folder),
  );
  for (const document of changed) await document.save();
}

async function showStarted(services: Services, summary: RunSummary): Promise<void> {
  services.trajectories.show({ kind: "run", folder: summary.folder, name: summary.recipe });
  if (readSetting("rollscope.runs.open") === "dashboard") services.panels.openDashboard([summary.folder]);
}

export async function stopRun(services: Services, given: unknown): Promise<void> {
  const run = await pickRun(services, given, "Stop Run", isActive, startOne);
  if (run === undefined) return;
  const stop = async (now: boolean) =>
    services.runs.accept(
      await withProgress(`Stopping ${run.recipe}`, (token) =>
        services.connection.request("run/stop", { folder: run.folder, now }, token),
      ),
    );
  try {
    // A second stop means at once; the first one waits for the next safe point.
    await stop(run.status === "stopping");
  } catch (error) {
    if (asFault(error).code !== "RUN_UNANSWERED") throw error;
    const end = "End Process";
    const chosen = await vscode.window.showWarningMessage(
      `${run.recipe} does not answer.`,
      {
        modal: true,
        detail:
          "It stands at a breakpoint, or its code does not give control back. Continue it in the debugger, or end its process: it can be resumed from its last whole checkpoint.",
      },
      end,
    );
    if (chosen === end) await stop(true);
  }
}

export async function pauseRun(services: Services, given: unknown): Promise<void> {
  const run = await pickRun(services, given, "Pause Run", ({ status }) => status === "running", startOne);
  if (run === undefined) return;
  services.runs.accept(
    await withProgress(`Pausing ${run.recipe}`, (token) =>
      services.connection.request("run/pause", { folder: run.folder }, token),
    ),
  );
}

const resumable = (run: RunSummary) => run.status === "paused" || (!isActive(run) && run.status !== "completed");

export async function resumeRun(services: Services, given: unknown): Promise<void> {
  const run = await pickRun(
    services,
    given,
    "Resume Run",
    resumable,
    "Only paused, stopped and failed runs can go on.",
  );
  if (run === undefined) return;
  const { connection, runs } = services;
  const { folder } = run;
  const summary = await withProgress(`Resuming ${run.recipe}`, async (token) =>
    run.status === "paused"
      ? await connection.request("run/continue", { folder }, token)
      : (await connection.request("run/resume", { folder }, token)).summary,
  );
  runs.accept(summary);
}

/** May be given an advisory's link to follow. */
export async function openDashboard(services: Services, given: unknown): Promise<void> {
  const folder = folderOf(given);
  const link = advisoryLinkSchema.safeParse((given as { link?: unknown } | undefined)?.link);
  if (folder !== null && link.success) return await followLink(services, folder, link.data);
  const run = await pickRun(services, given, "Open Run Dashboard", () => true, startOne);
  if (run === undefined) return;
  services.panels.openDashboard([run.folder]);
  services.trajectories.show({ kind: "run", folder: run.folder, name: run.recipe });
}

export async function compareRuns(services: Services, given: unknown, all: unknown): Promise<void> {
  const lines = Array.isArray(all) ? all.map(folderOf).filter((folder) => folder !== null) : [];
  const first = folderOf(given);
  const chosen = lines.length > 1 ? lines : first === null ? [] : [first];
  const folders =
    lines.length > 1 ? lines : (await pickRuns(services, "Compare Runs", chosen))?.map(({ folder }) => folder);
  if (folders !== undefined) services.panels.openDashboard(folders);
}

const exportKinds = [
  { label: "Chat", description: "conversations, a line each (JSONL)", format: "chat", end: "rollscope.jsonl" },
  {
    label: "Training rows",
    description: "token ids, masks, log-probabilities, advantages",
    format: "training",
    end: "safetensors",
  },
  {
    label: "Archive",
    description: "everything, to be opened by Rollscope elsewhere",
    format: "archive",
    end: "tar",
  },
] as const;

export async function exportRun(services: Services, given: unknown): Promise<void> {
  const run = await pickRun(services, given, "Export Run", () => true, startOne);
  if (run === undefined) return;
  const kind = await vscode.window.showQuickPick(exportKinds, { title: `Export ${run.recipe} as` });
  if (kind === undefined) return;
  const base = vscode.workspace.workspaceFolders?.[0]?.uri ?? vscode.Uri.file(dirname(run.folder));
  const name = `${basename(run.folder)}-${kind.format}.${kind.end}`;
  const target = await vscode.window.showSaveDialog({ defaultUri: vscode.Uri.joinPath(base, name) });
  if (target === undefined) return;
  const done = await withProgress(`Exporting ${run.recipe}`, (token) =>
    services.connection.request("run/export", { folder: run.folder, format: kind.format, path: target.fsPath }, token),
  );
  const message = `${done.records} records of ${run.recipe} were written to ${done.path}.`;
  void showDone(message, {
    Show: () => vscode.commands.executeCommand("revealFileInOS", vscode.Uri.file(done.path)),
    "Copy Path": () => vscode.env.clipboard.writeText(done.path),
  });
}

export async function explainZeroLoss(services: Services, given: unknown): Promise<void> {
  const run = await pickRun(services, given, "Explain Why Loss Is Zero", ({ step }) => step > 0, startOne);
  if (run === undefined) return;
  const typed = await vscode.window.showInputBox({
    title: "Explain Why Loss Is Zero",
    prompt: `Step of ${run.recipe}, 1 to ${run.step}`,
    value: String(run.step),
    validateInput: (text) =>
      /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= run.step ? null : `A step from 1 to ${run.step}`,
  });
  if (typed === undefined) return;
  const step = Number(typed);
  const explanation = await withProgress("Looking for the reason", (token) =>
    services.connection.request("run/explainZeroLoss", { folder: run.folder, step }, token),
  );
  await services.reports.show(`${run.recipe}, step ${step}.txt`, explanationText(run, explanation));
}

export async function showRunLog(services: Services, given: unknown): Promise<void> {
  const run = await pickRun(services, given, "Show Run Log", () => true, startOne);
  if (run === undefined) return;
  const { text, truncated } = await services.connection.request("run/log", { folder: run.folder, bytes: 200_000 });
  const start = truncated ? "… earlier lines are in the run's folder\n" : "";
  await services.reports.show(`${basename(run.folder)}.log`, start + plainTerminalText(text));
}

export async function removeRun(services: Services, given: unknown): Promise<void> {
  const run = await pickRun(services, given, "Remove Run", (one) => !isActive(one), startOne);
  if (run === undefined) return;
  const forget = "Remove from List";
  const erase = "Delete Files";
  const chosen = await vscode.window.showWarningMessage(
    `Remove ${run.recipe}?`,
    { modal: true, detail: `Deleting the files of ${run.folder} cannot be undone.` },
    forget,
    erase,
  );
  if (chosen === undefined) return;
  await services.connection.request("run/remove", { folder: run.folder, deleteFiles: chosen === erase });
  await services.runs.lookAgain();
  setContextKey("rollscope.hasRuns", services.runs.all().length > 0);
}
