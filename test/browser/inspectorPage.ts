// The inspector in a browser over a host that a test plays, and what a person reads of it.
import type { Browser, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import type { PageState } from "../../protocol/pageHost.ts";
import type { EditorThemeName } from "./editorThemes.ts";
import { type PageBench, startPageBench } from "./pageBench.ts";
import { type BenchTrajectory, handlersOf, recordSource } from "./trajectoryBench.ts";
import { openWatchedPage, type WatchedPage } from "./watchedPage.ts";

export interface OpenedInspector extends WatchedPage {
  readonly bench: PageBench;
  asked(method: string): unknown[];
}

/** Opens a page over a host that the test plays; it ends with the test. */
export async function openInspector(
  browser: Browser,
  trajectory: BenchTrajectory,
  view: Record<string, unknown> = {},
  themeName: EditorThemeName = "dark",
  viewport = { width: 1280, height: 860 },
): Promise<OpenedInspector> {
  const state: PageState = { page: "inspector", source: recordSource, view };
  const bench = await startPageBench("inspector", state, handlersOf(trajectory));
  onTestFinished(() => bench.close());
  const watched = await openWatchedPage(browser, { theme: themeName, viewport });
  await watched.page.goto(bench.url);
  return {
    page: watched.page,
    bench,
    get faults() {
      return watched.faults;
    },
    copied: watched.copied,
    asked: (method) => bench.asked.filter((request) => request.method === method).map(({ params }) => params),
  };
}

/** The machine may be busy with other suites. */
export const eventually = <T>(look: () => T) => expect.poll(look, { timeout: 15_000 });

export const chosenTurn = (page: Page) => page.locator(".turn-facts h2").textContent();
export const numberOf = (page: Page, column: string) => page.locator(`[data-column="${column}"]`).textContent();

type Arguments<T> = T extends [unknown, ...infer Rest] ? Rest : never;
/** Of openInspector, without the browser. */
export type OpenArguments = Arguments<Parameters<typeof openInspector>>;
