// Check Environment, the daemon's log, choosing a payload, and the status bar's menu: what helps when something does not work.
import { execFile } from "node:child_process";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { asFault, refuse } from "../daemon/fault.ts";
import { installedPayload, payloadAt, rollscopeHome } from "../daemon/payload.ts";
import { showDone, withProgress } from "../notify.ts";
import { type DoctorItem, doctorText } from "../reportTexts.ts";
import type { Services } from "../services.ts";
import { setContextKey } from "../surface.ts";

const reportName = "Check Environment.txt";

export async function checkEnvironment(services: Services): Promise<readonly DoctorItem[]> {
  const { connection, launchers, reports } = services;
  const items = new Map<string, DoctorItem>();
  const put = (item: DoctorItem, done = false) => {
    items.set(item.id, item);
    reports.update(reportName, doctorText([...items.values()], done));
  };
  await reports.show(reportName, doctorText([], false));
  let failed = false;
  try {
    const { payload, node } = await launchers.find();
    put({ id: "payload", title: "Payload", status: "ok", detail: `${payload.file} (${payload.origin})`, next: null });
    if (node !== null) {
      put({ id: "node", title: "Node", status: "ok", detail: `${node.version} (${node.origin})`, next: null });
    }
    const hello = await connection.connect();
    put({ id: "daemon", title: "Daemon", status: "ok", detail: `${hello.version}, process ${hello.pid}`, next: null });
  } catch (error) {
    const { code, message, next } = asFault(error);
    const id = code.startsWith("PAYLOAD") ? "payload" : code.startsWith("NODE") ? "node" : "daemon";
    const title = { payload: "Payload", node: "Node", daemon: "Daemon" }[id];
    // Here the action of the general message is being done.
    const here = id === "payload" ? "Choose one in the message below, or build one: `npm run package`." : next;
    put({ id, title, status: "failed", detail: `${message} (${code})`, next: here }, true);
    failed = true;
  }
  if (!failed) {
    const off = connection.on("doctor/progress", (item) => put(item));
    try {
      const { items: answered } = await withProgress("Checking the environment", (token) =>
        connection.request("doctor", { recipe: null }, token),
      );
      for (const item of answered) items.set(item.id, item);
    } finally {
      off();
    }
  }
  const all = [...items.values()];
  reports.update(reportName, doctorText(all, true));
  setContextKey("rollscope.environmentChecked", true);
  if (failed) void offerPayload(services);
  return all;
}

async function offerPayload(services: Services): Promise<void> {
  await showDone("Rollscope's payload (the program that runs recipes) does not work yet.", {
    "Choose Payload…": () => choosePayload(services),
    "How to Build One": () =>
      services.reports.show(
        "Payload.txt",
        `In a checkout of Rollscope, run\n\n  npm run package\n\nand choose the file rollscope-<platform>.tar with Rollscope: Check Environment, or unpack it to\n\n  ${installedPayload(rollscopeHome(process.env, homedir()), services.launchers.version)}\n`,
      ),
  });
}

/** Takes a payload file (installs it) or a folder (names it in the setting). */
export async function choosePayload(services: Services): Promise<void> {
  const chosen = await vscode.window.showOpenDialog({
    title: "Payload: rollscope-<platform>.tar, or a folder that holds one",
    openLabel: "Use This Payload",
    canSelectFiles: true,
    canSelectFolders: true,
  });
  const path = chosen?.[0]?.fsPath;
  if (path === undefined) return;
  if ((await stat(path)).isFile() && /\.(tar|tgz|tar\.gz)$/.test(path)) {
    await withProgress("Installing the payload", () => installPayload(path, services.launchers.version));
    await vscode.workspace.getConfiguration().update("rollscope.payload", undefined, vscode.ConfigurationTarget.Global);
  } else {
    if ((await payloadAt(path, "setting")) === null) {
      refuse("PAYLOAD_INVALID", `${path} holds no payload.`, "Choose the file or folder that `npm run package` made.");
    }
    await vscode.workspace.getConfiguration().update("rollscope.payload", path, vscode.ConfigurationTarget.Global);
  }
  services.connection.disconnect();
  await checkEnvironment(services);
}

/** Unpacks beside the target and moves it into place whole. */
export async function installPayload(
  file: string,
  version: string,
  home = rollscopeHome(process.env, homedir()),
): Promise<void> {
  const target = installedPayload(home, version);
  const draft = `${target}.${process.pid}`;
  await mkdir(dirname(target), { recursive: true });
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft);
  try {
    await promisify(execFile)("tar", ["-xf", file, "-C", draft]);
    const whole = (await payloadAt(draft, "home")) === null ? await onlyFolder(draft) : draft;
    if ((await payloadAt(whole, "home")) === null) {
      refuse(
        "PAYLOAD_INVALID",
        `${file} holds no payload.`,
        "Choose rollscope-<platform>.tar that `npm run package` made.",
      );
    }
    await rm(target, { recursive: true, force: true });
    await rename(whole, target);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function onlyFolder(folder: string): Promise<string> {
  const { readdir } = await import("node:fs/promises");
  const names = await readdir(folder);
  return names.length === 1 ? join(folder, names[0]!) : folder;
}

const shownLogBytes = 200_000;

export async function showDaemonLog(services: Services): Promise<void> {
  const { state } = services.connection;
  const file = state.kind === "connected" ? state.hello.log : services.context.globalState.get<string>("daemonLog");
  if (file === undefined) {
    services.log.show();
    return;
  }
  const text = await tail(file).catch(() => null);
  if (text === null) {
    services.log.show();
    return;
  }
  const editor = await services.reports.show("Daemon.log", text);
  const last = editor.document.lineCount - 1;
  editor.revealRange(new vscode.Range(last, 0, last, 0));
}

async function tail(file: string): Promise<string> {
  const handle = await open(file, "r");
  try {
    const { size } = await handle.stat();
    const from = Math.max(0, size - shownLogBytes);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - from), 0, size - from, from);
    const text = buffer.toString("utf8", 0, bytesRead);
    return from === 0 ? text : text.slice(text.indexOf("\n") + 1);
  } finally {
    await handle.close();
  }
}

/** Behind the status bar item. */
export async function showActions(services: Services): Promise<void> {
  const { state } = services.connection;
  const trouble = state.kind === "waiting" || state.kind === "failed" ? state.fault : null;
  const action = (label: string, command: string, description = "") => ({ label, description, command });
  const picked = await vscode.window.showQuickPick(
    [
      ...(trouble === null ? [] : [action("$(debug-disconnect) Connect Again", "connect", trouble.message)]),
      action("$(play) Run Recipe", "rollscope.runRecipe"),
      action("$(graph-line) Open Run Dashboard", "rollscope.openDashboard"),
      action("$(list-tree) Show Runs", "rollscope.runs.focus"),
      action("$(checklist) Check Environment", "rollscope.checkEnvironment"),
      action("$(output) Show Daemon Log", "rollscope.showDaemonLog"),
    ],
    { title: "Rollscope" },
  );
  if (picked === undefined) return;
  if (picked.command === "connect") await services.connection.connect();
  else await vscode.commands.executeCommand(picked.command);
}
