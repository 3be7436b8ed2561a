// Debug Recipe: attaches the editor's own JavaScript debugger to a run that waits for it. A run that nobody can attach to is ended,
// so that it does not wait for ever.
import * as vscode from "vscode";
import type { DebugTarget } from "../protocol/daemonMethods.ts";
import type { DaemonConnection } from "./daemon/connection.ts";
import { refuse } from "./daemon/fault.ts";

interface Debugged {
  readonly folder: string;
  readonly name: string;
}

/** @throws DEBUG_ATTACH_FAILED; then the run was ended */
export async function debugRun(
  { connection }: { readonly connection: DaemonConnection },
  recipe: Debugged,
  run: string,
  target: DebugTarget | null,
): Promise<void> {
  if (target === null) {
    refuse(
      "DAEMON_REQUEST_INVALID",
      "The run was started without a debugger.",
      "This is a fault of Rollscope: report it.",
    );
  }
  if (await attach(recipe, target)) return;
  await connection.request("run/stop", { folder: run, now: true });
  refuse(
    "DEBUG_ATTACH_FAILED",
    `The debugger could not attach to ${recipe.name}, so the run was ended.`,
    "Check that the built-in extension JavaScript Debugger is enabled, and try again.",
  );
}

/**
 * Through the secret path that only who started the process knows. Breakpoints bind in recipe.ts by the source map inside of the
 * bundle, which lies outside of the window's folders.
 */
async function attach({ folder, name }: Debugged, target: DebugTarget): Promise<boolean> {
  return await vscode.debug.startDebugging(vscode.workspace.getWorkspaceFolder(vscode.Uri.file(folder)), {
    type: "pwa-node",
    request: "attach",
    name: `Rollscope: ${name}`,
    address: target.host,
    port: target.port,
    websocketAddress: target.url,
    continueOnAttach: true,
    attachExistingChildren: false,
    autoAttachChildProcesses: false,
    sourceMaps: true,
    pauseForSourceMap: true,
    resolveSourceMapLocations: null,
    outFiles: [],
    skipFiles: ["<node_internals>/**", "**/node_modules/**", "**/dist/cli.mjs", "**/cli.mjs"],
    cwd: folder,
    localRoot: folder,
    restart: false,
    timeout: 30_000,
  });
}
