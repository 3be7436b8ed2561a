// Pages as `rollscope open` serves them, for tests: a daemon of its own with the toy engines, a browser, nothing in between but the socket.
import type { Browser } from "playwright-core";
import { expect } from "vitest";
import type { DaemonClient } from "../../agent-daemon/src/daemon/client.ts";
import type { PageState } from "../../protocol/pageHost.ts";
import type { TrajectorySource } from "../../protocol/trajectoryView.ts";
import { bundleModule } from "../support/moduleProgram.ts";
import { runDaemon } from "../support/runningDaemon.ts";
import type { EditorThemeName } from "./editorThemes.ts";
import { openWatchedPage, type WatchedPage } from "./watchedPage.ts";

/** The machine may be busy with other suites. */
export const eventually = <T>(look: () => T) => expect.poll(look, { timeout: 30_000 });

export interface DaemonPages {
  readonly client: DaemonClient;
  /** Goes to the page in a window of its own, or in one that is open. */
  open(state: PageState, options?: OpenOptions): Promise<WatchedPage>;
  inspect(
    source: TrajectorySource,
    view?: Readonly<Record<string, unknown>>,
    options?: OpenOptions,
  ): Promise<WatchedPage>;
}

export interface OpenOptions {
  readonly theme?: EditorThemeName;
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly in?: WatchedPage;
}

/** Starts a daemon that ends with the test. @param script the bundled toyRollscope */
export async function daemonPages(script: string, browser: Browser): Promise<DaemonPages> {
  const client = await (await runDaemon(script)).connect();
  const open: DaemonPages["open"] = async (state, options = {}) => {
    const { url } = await client.call("page/open", { state });
    const opened = options.in ?? (await openWatchedPage(browser, options));
    await opened.page.goto(url);
    return opened;
  };
  return {
    client,
    open,
    inspect: (source, view = {}, options = {}) => open({ page: "inspector", source, view }, options),
  };
}

/** The toy command line as a program, for a whole file of tests. */
export function toyProgram(): Promise<{ readonly script: string; readonly remove: () => void }> {
  return bundleModule("integration/programs/toyRollscope.ts");
}
