// Commands about trajectories: open, compare, import, and what the Trajectories view shows.
import * as vscode from "vscode";
import { trajectoryOrders } from "../../protocol/daemonMethods.ts";
import { type TrajectoryRow, type TrajectorySource, trajectorySourceSchema } from "../../protocol/trajectoryView.ts";
import { trajectoryEditorType } from "../contributions.ts";
import { refuse } from "../daemon/fault.ts";
import { showDone, withProgress } from "../notify.ts";
import type { Services } from "../services.ts";
import { windowOutputDir } from "../surface.ts";
import { describeFilter, orderNames, parseScore, trajectoryLine } from "../views/trajectoryLines.ts";
import { sourceTitle } from "../webviews/panels.ts";
import { pickRun } from "./pick.ts";

/** A line of the view, an object with a source, a file, or nothing: then the person picks. */
export async function openTrajectory(services: Services, given: unknown): Promise<void> {
  if (given instanceof vscode.Uri) {
    await vscode.commands.executeCommand("vscode.openWith", given, trajectoryEditorType);
    return;
  }
  const source = sourceOf(given) ?? (await pickTrajectory(services, "Open Trajectory"));
  if (source !== undefined) services.panels.openInspector(source, sourceTitle(source));
}

/** Lines that are selected together, or a line and one that the person picks, or two that are picked. */
export async function diffTrajectories(services: Services, given: unknown, all: unknown): Promise<void> {
  const selected = (Array.isArray(all) ? all : []).flatMap((line) => sourceOf(line) ?? []);
  const first = sourceOf(given) ?? selected[0] ?? (await pickTrajectory(services, "Diff Trajectories: the first one"));
  if (first === undefined) return;
  const isFirst = (source: TrajectorySource) => JSON.stringify(source) === JSON.stringify(first);
  const others = selected.filter((source) => !isFirst(source));
  if (others.length === 0) {
    const other = await pickTrajectory(services, "Diff Trajectories: the one beside it", isFirst);
    if (other === undefined) return;
    others.push(other);
  }
  if (others.length > mostCompared) {
    refuse(
      "DAEMON_REQUEST_INVALID",
      `${others.length + 1} trajectories are too many to stand side by side.`,
      `Select at most ${mostCompared + 1}.`,
    );
  }
  services.panels.openInspector(first, sourceTitle(first), { view: { mode: "siblings", against: others } });
}

function sourceOf(given: unknown): TrajectorySource | undefined {
  const parsed = trajectorySourceSchema.safeParse((given as { source?: unknown } | undefined)?.source);
  return parsed.success ? parsed.data : undefined;
}

/** Beside the first one. */
const mostCompared = 8;

const openFileLabel = "$(folder-opened) A file…";

async function pickTrajectory(
  services: Services,
  title: string,
  leftOut: (source: TrajectorySource) => boolean = () => false,
): Promise<TrajectorySource | undefined> {
  const read = await chooseList(services, title);
  if (read === undefined) return undefined;
  const rows = await withProgress("Reading trajectories", read);
  const items = rows
    .filter(({ source }) => !leftOut(source))
    .map((row) => {
      const { label, description } = trajectoryLine(row);
      return { label, description: description ?? "", detail: row.id, source: row.source as TrajectorySource | null };
    });
  const picked = await vscode.window.showQuickPick(
    [...items, { label: openFileLabel, description: "", detail: "", source: null }],
    { title, matchOnDescription: true, matchOnDetail: true },
  );
  if (picked === undefined) return undefined;
  if (picked.source !== null) return picked.source;
  const files = await vscode.window.showOpenDialog({ canSelectMany: false, openLabel: "Open Trajectories" });
  const file = files?.[0];
  if (file !== undefined) await vscode.commands.executeCommand("vscode.openWith", file, trajectoryEditorType);
  return undefined;
}

type ReadRows = (token: vscode.CancellationToken) => Promise<readonly TrajectoryRow[]>;

/** What the Trajectories view shows, or those of a run that the person picks; undefined: dismissed. */
async function chooseList(services: Services, title: string): Promise<ReadRows | undefined> {
  const { connection } = services;
  const { place, filter, order, descending } = services.trajectories;
  if (place.kind === "file")
    return async (token) => (await connection.request("file/open", { path: place.path }, token)).rows;
  const next = "Import Trajectories opens those of files.";
  const chosen =
    place.kind === "run" ? place : await pickRun(services, undefined, `${title}: of which run`, () => true, next);
  if (chosen === undefined) return undefined;
  const { folder } = chosen;
  const request = { folder, filter: place.kind === "run" ? filter : {}, order, descending, limit: 1000 };
  return async (token) => (await connection.request("trajectories/list", request, token)).rows;
}

export async function importTrajectories(services: Services, given: unknown): Promise<void> {
  const files =
    given instanceof vscode.Uri
      ? [given]
      : await vscode.window.showOpenDialog({
          title: "Import Trajectories",
          openLabel: "Import",
          canSelectMany: true,
          canSelectFolders: false,
        });
  if (files === undefined || files.length === 0) return;
  const { summary, imported, problems } = await withProgress("Importing trajectories", (token) =>
    services.connection.request(
      "file/import",
      { paths: files.map(({ fsPath }) => fsPath), outputDir: windowOutputDir() },
      token,
    ),
  );
  services.runs.accept(summary);
  services.trajectories.show({ kind: "run", folder: summary.folder, name: summary.recipe });
  if (problems.length > 0) {
    const lines = problems.map(({ code, message, next }) => `${message} ${next} (${code})`);
    await services.reports.show(
      "Import.txt",
      `${imported} trajectories imported; ${problems.length} problems:\n\n${lines.join("\n")}\n`,
    );
  }
  void showDone(`${imported} trajectories were imported.`, {
    "Show Trajectories": () => vscode.commands.executeCommand("rollscope.trajectories.focus"),
  });
}

/** Shows a file that the custom editor opened: its first trajectory in the editor, all of them in the view. */
export async function openTrajectoryFile(
  services: Services,
  uri: vscode.Uri,
  panel: vscode.WebviewPanel,
): Promise<void> {
  if (uri.scheme !== "file") {
    refuse(
      "DATA_FILE_NOT_FOUND",
      `${uri.toString(true)} lies in a virtual file system, which the daemon cannot read.`,
      "Save a copy on this machine and open that.",
    );
  }
  services.panels.fillEditor(panel, { kind: "file", path: uri.fsPath, index: 0 });
  const { rows } = await services.connection.request("file/open", { path: uri.fsPath });
  if (rows.length > 1) {
    services.trajectories.show({
      kind: "file",
      path: uri.fsPath,
      name: sourceTitle({ kind: "file", path: uri.fsPath, index: 0 }),
    });
  }
}

export async function sortTrajectories(services: Services): Promise<void> {
  const { trajectories } = services;
  const picked = await vscode.window.showQuickPick(
    trajectoryOrders.flatMap((order) =>
      [true, false].map((descending) => ({
        label: `$(${descending ? "arrow-down" : "arrow-up"}) ${orderNames[order]}`,
        description: `${descending ? "greatest" : "least"} first${
          order === trajectories.order && descending === trajectories.descending ? ", now" : ""
        }`,
        order,
        descending,
      })),
    ),
    { title: "Sort Trajectories", matchOnDescription: true },
  );
  if (picked !== undefined) trajectories.orderBy(picked.order, picked.descending);
}

export async function filterTrajectories(services: Services): Promise<void> {
  const { trajectories } = services;
  const { filter } = trajectories;
  const flag = (label: string, key: "drifted" | "truncated" | "toolErrors") => ({
    label: `$(${filter[key] === true ? "check" : "blank"}) ${label}`,
    apply: async () => ({ ...without(filter, key), ...(filter[key] === true ? {} : { [key]: true }) }),
  });
  const picked = await vscode.window.showQuickPick(
    [
      { label: "$(search) Text…", apply: async () => await askText(filter) },
      { label: "$(symbol-numeric) Score…", apply: async () => await askScore(filter) },
      flag("Only with drift", "drifted"),
      flag("Only truncated", "truncated"),
      flag("Only with tool errors", "toolErrors"),
      { label: "$(beaker) Only training", apply: async () => ({ ...filter, split: "train" as const }) },
      { label: "$(mortar-board) Only held out", apply: async () => ({ ...filter, split: "heldOut" as const }) },
      ...(Object.keys(filter).length === 0
        ? []
        : [
            {
              label: "$(clear-all) Show all",
              description: describeFilter(filter).join(" · "),
              apply: async () => ({}),
            },
          ]),
    ],
    { title: "Filter Trajectories" },
  );
  const next = await picked?.apply();
  if (next !== undefined) trajectories.filterBy(next);
}

type Filter = Services["trajectories"]["filter"];

function without(filter: Filter, key: keyof Filter): Filter {
  const { [key]: _, ...rest } = filter;
  return rest;
}

async function askText(filter: Filter): Promise<Filter | undefined> {
  const text = await vscode.window.showInputBox({
    title: "Filter Trajectories",
    prompt: "Text that occurs in the conversation; empty: any",
    value: filter.text ?? "",
  });
  if (text === undefined) return undefined;
  return text === "" ? without(filter, "text") : { ...filter, text };
}

async function askScore(filter: Filter): Promise<Filter | undefined> {
  const text = await vscode.window.showInputBox({
    title: "Filter Trajectories",
    prompt: "Least and greatest score, as in `0.5 1`, `0.5 -` or `- 0`; empty: any",
    validateInput: (typed) => (parseScore(typed) === null ? "Two numbers, or - for none, with a blank between" : null),
  });
  if (text === undefined) return undefined;
  const score = parseScore(text);
  return score === null || Object.keys(score).length === 0 ? without(filter, "score") : { ...filter, score };
}

export async function chooseStep(services: Services): Promise<void> {
  const { trajectories, runs } = services;
  const { place, filter } = trajectories;
  if (place.kind !== "run") {
    refuse("RUN_NOT_FOUND", "No run is chosen.", "Choose one in the Runs view.");
  }
  const last = runs.get(place.folder)?.step ?? 0;
  const typed = await vscode.window.showInputBox({
    title: "Step whose trajectories are shown",
    prompt: last === 0 ? "No step is done yet; empty: all" : `1 to ${last}; empty: all`,
    value: filter.step === undefined ? "" : String(filter.step),
    validateInput: (text) => (/^\d*$/.test(text.trim()) ? null : "A number"),
  });
  if (typed === undefined) return;
  const rest = without(filter, "step");
  trajectories.filterBy(typed.trim() === "" ? rest : { ...rest, step: Number(typed) });
}
