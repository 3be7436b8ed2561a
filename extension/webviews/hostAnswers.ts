// What pages ask of the editor besides the daemon: other pages, the clipboard, files, choices. Parameters come parsed.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as vscode from "vscode";
import type { AdvisoryLink } from "../../protocol/advisory.ts";
import type { HostMethod } from "../../protocol/pageHost.ts";
import type { TrajectorySource } from "../../protocol/trajectoryView.ts";
import { pickRuns } from "../commands/pick.ts";
import { refuse } from "../daemon/fault.ts";
import type { Services } from "../services.ts";
import { keyLine } from "./keyLine.ts";
import { dashboardView, sourceTitle } from "./panels.ts";

type Answers = {
  readonly [M in Exclude<HostMethod, "host/ready" | "host/keepState">]: (params: never) => Promise<object>;
};

export function hostAnswers(services: () => Services): (method: HostMethod, params: unknown) => Promise<unknown> {
  const answers: Answers = {
    "host/openTrajectory": async ({ source, beside }: { source: TrajectorySource; beside: boolean }) => {
      services().panels.openInspector(source, sourceTitle(source), { beside });
      return {};
    },
    "host/openStep": async ({ folder, step }: { folder: string; step: number }) => {
      await showStep(services(), folder, step);
      return {};
    },
    "host/openDashboard": async ({ folder }: { folder: string }) => {
      services().panels.openDashboard([folder]);
      return {};
    },
    "host/follow": async ({ folder, link }: { folder: string; link: AdvisoryLink }) => {
      await followLink(services(), folder, link);
      return {};
    },
    "host/copy": async ({ text }: { text: string }) => {
      await vscode.env.clipboard.writeText(text);
      return {};
    },
    "host/saveText": async ({ name, text }: { name: string; text: string }) => {
      const base = vscode.workspace.workspaceFolders?.[0]?.uri;
      const target = await vscode.window.showSaveDialog(
        base === undefined ? {} : { defaultUri: vscode.Uri.joinPath(base, name.replaceAll(/[\\/]/g, "_")) },
      );
      if (target !== undefined) await vscode.workspace.fs.writeFile(target, Buffer.from(text, "utf8"));
      return {};
    },
    "host/pickRuns": async ({ chosen }: { chosen: string[] }) => {
      const runs = await pickRuns(services(), "Runs to show together", chosen);
      return { folders: runs?.map(({ folder }) => folder) ?? null };
    },
  };
  return async (method, params) => {
    if (method === "host/ready" || method === "host/keepState") {
      return refuse(
        "DAEMON_REQUEST_INVALID",
        `${method} is answered by the panel.`,
        "This is a fault of Rollscope: report it.",
      );
    }
    return await answers[method](params as never);
  };
}

/** The records of a step in the Trajectories view. */
export async function showStep(services: Services, folder: string, step: number): Promise<void> {
  const name = services.runs.get(folder)?.recipe ?? folder;
  services.trajectories.show({ kind: "run", folder, name }, { step });
  await vscode.commands.executeCommand("rollscope.trajectories.focus");
}

export async function followLink(services: Services, folder: string, link: AdvisoryLink): Promise<void> {
  switch (link.kind) {
    case "step":
      return await showStep(services, folder, link.step);
    case "record":
      return services.panels.openInspector({ kind: "record", folder, record: link.record }, link.record);
    case "metric":
      return services.panels.openDashboard([folder], dashboardView(link));
    case "recipeKey":
      return await openRecipeKey(services, folder, link.key);
  }
}

async function openRecipeKey(services: Services, folder: string, key: string): Promise<void> {
  const recipeFolder = services.runs.get(folder)?.recipeFolder ?? null;
  if (recipeFolder === null) {
    refuse("RECIPE_NOT_FOUND", "The recipe of this run is not known any more.", "Open its copy in the run's folder.");
  }
  const file = join(recipeFolder, "recipe.yaml");
  const line = keyLine(await readFile(file, "utf8"), key) ?? 0;
  const range = new vscode.Range(line, 0, line, 0);
  await vscode.window.showTextDocument(vscode.Uri.file(file), { selection: range });
}
