// Pages as `rollscope open` serves them, for tests: a daemon of its own with the toy engines, a browser, nothing in between but the socket.
import type { Browser, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import type { DaemonClient } from "../../agent-daemon/src/daemon/client.ts";
import type { PageState } from "../../protocol/pageHost.ts";
import type { TrajectorySource } from "../../protocol/trajectoryView.ts";
import { bundleModule } from "../support/moduleProgram.ts";
import { runDaemon } from "../support/runningDaemon.ts";
import { type EditorThemeName, openInTheme } from "./editorThemes.ts";
import { watchPage } from "./pageBench.ts";

/** The machine may be busy with other suites. */
export const eventually = <T>(look: () => T) => expect.poll(look, { timeout: 30_000 });

export interface DaemonPages {
  readonly client: DaemonClient;
  /** Goes to the page in a window of its own, or in one that is open. */
  open(state: PageState, options?: OpenOptions): Promise<OpenedPage>;
  inspect(
    source: TrajectorySource,
    view?: Readonly<Record<string, unknown>>,
    options?: OpenOptions,
  ): Promise<OpenedPage>;
}

export interface OpenOptions {
  readonly theme?: EditorThemeName;
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly in?: OpenedPage;
}

export interface OpenedPage {
  readonly page: Page;
  /** Errors, refused policies and failed loads. */
  readonly faults: readonly string[];
  /** Texts that the page put into the clipboard. */
  copied(): Promise<string[]>;
}

/** Starts a daemon that ends with the test. @param script the bundled toyRollscope */
export async function daemonPages(script: string, browser: Browser): Promise<DaemonPages> {
  const client = await (await runDaemon(script)).connect();
  const open: DaemonPages["open"] = async (state, options = {}) => {
    const { url } = await client.call("page/open", { state });
    const opened = options.in ?? (await newPage(browser, options));
    await opened.page.goto(url);
    return opened;
  };
  return {
    client,
    open,
    inspect: (source, view = {}, options = {}) => open({ page: "inspector", source, view }, options),
  };
}

async function newPage(browser: Browser, { theme = "dark", viewport }: OpenOptions): Promise<OpenedPage> {
  const page = await browser.newPage({ viewport: viewport ?? { width: 1280, height: 860 } });
  onTestFinished(() => page.close());
  const faults = watchPage(page);
  await openInTheme(page, theme);
  // A browser without a window has no clipboard to look into.
  await page.addInitScript(() => {
    const written: string[] = [];
    Object.assign(window, { __copied: written });
    navigator.clipboard.writeText = async (text) => void written.push(text);
  });
  return {
    page,
    // The toolkit's dropdown carries a style attribute in its template; the policy refuses it, and nothing depends on it.
    get faults() {
      return faults.filter((fault) => !fault.startsWith("Applying inline style"));
    },
    copied: () => page.evaluate(() => (window as unknown as { __copied: string[] }).__copied),
  };
}

/** The toy command line as a program, for a whole file of tests. */
export function toyProgram(): Promise<{ readonly script: string; readonly remove: () => void }> {
  return bundleModule("integration/programs/toyRollscope.ts");
}
