// The only place that shows notifications and progress. A notification always has an action; progress appears after two seconds and
// can be cancelled.
import * as vscode from "vscode";
import type { CommandId } from "./contributions.ts";
import { asFault, CancelledError, type Fault, isCancelled } from "./daemon/fault.ts";

interface Action {
  readonly title: string;
  readonly command: CommandId | "workbench.trust.manage";
  readonly arguments?: readonly unknown[];
}

function actionsOf(fault: Fault): Action[] {
  const log: Action = { title: "Show Daemon Log", command: "rollscope.showDaemonLog" };
  const check: Action = { title: "Check Environment", command: "rollscope.checkEnvironment" };
  if (fault.code === "WORKSPACE_UNTRUSTED")
    return [{ title: "Manage Workspace Trust", command: "workbench.trust.manage" }];
  if (/^(PAYLOAD|NODE|DAEMON_VERSION)_/.test(fault.code)) return [check];
  if (fault.code === "DAEMON_UNREACHABLE") return [log, check];
  if (/^(MODEL|ENGINE)_/.test(fault.code)) return [check, log];
  return [log];
}

/** Says what went wrong, with its code and what can be done; nothing when the person cancelled. */
export async function showFault(error: unknown, first: readonly Action[] = []): Promise<void> {
  if (isCancelled(error)) return;
  const fault = asFault(error);
  const actions = [...first, ...actionsOf(fault)];
  const chosen = await vscode.window.showErrorMessage(
    `${fault.message} ${fault.next} (${fault.code})`,
    ...actions.map(({ title }) => title),
  );
  const action = actions.find(({ title }) => title === chosen);
  if (action !== undefined) await vscode.commands.executeCommand(action.command, ...(action.arguments ?? []));
}

/** Tells of something done, with what can be done next. */
export async function showDone(message: string, actions: Readonly<Record<string, () => unknown>>): Promise<void> {
  const chosen = await vscode.window.showInformationMessage(message, ...Object.keys(actions));
  if (chosen !== undefined) await actions[chosen]?.();
}

const patienceMilliseconds = 2000;

export type Report = (message: string) => void;

/** Runs the work; after two seconds shows that it goes on, with a way to cancel. */
export async function withProgress<T>(
  title: string,
  work: (token: vscode.CancellationToken, report: Report) => Promise<T>,
): Promise<T> {
  const source = new vscode.CancellationTokenSource();
  let shown: vscode.Progress<{ message?: string }> | null = null;
  let last = "";
  const done = work(source.token, (message) => {
    last = message;
    shown?.report({ message });
  });
  const timer = setTimeout(() => {
    void vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title, cancellable: true },
      async (progress, token) => {
        shown = progress;
        if (last !== "") progress.report({ message: last });
        token.onCancellationRequested(() => source.cancel());
        // A cancelled wait ends at once; what it waited for is told to stop by the token.
        const cancelled = new Promise<void>((resolve) => source.token.onCancellationRequested(() => resolve()));
        await Promise.race([done.then(noop, noop), cancelled]);
      },
    );
  }, patienceMilliseconds);
  const cancelled = new Promise<never>((_, reject) =>
    source.token.onCancellationRequested(() => reject(new CancelledError())),
  );
  try {
    return await Promise.race([done, cancelled]);
  } finally {
    clearTimeout(timer);
    source.dispose();
  }
}

function noop(): void {}
