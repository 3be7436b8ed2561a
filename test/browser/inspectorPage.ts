// The inspector in a browser over a host that a test plays, and what a person reads of it.
import type { Browser, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import type { PageState } from "../../protocol/pageHost.ts";
import { type EditorThemeName, openInTheme } from "./editorThemes.ts";
import { type PageBench, startPageBench, watchPage } from "./pageBench.ts";
import { type BenchTrajectory, handlersOf, recordSource } from "./trajectoryBench.ts";

export interface OpenedInspector {
  readonly page: Page;
  readonly bench: PageBench;
  readonly faults: string[];
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
  const page = await browser.newPage({ viewport });
  onTestFinished(async () => {
    await page.close();
    await bench.close();
  });
  const faults = watchPage(page);
  await openInTheme(page, themeName);
  // A browser without a window has no clipboard to look into.
  await page.addInitScript(() => {
    const written: string[] = [];
    Object.assign(window, { __copied: written });
    navigator.clipboard.writeText = async (text) => void written.push(text);
  });
  await page.goto(bench.url);
  return {
    page,
    bench,
    // The toolkit's dropdown carries a style attribute in its template; the policy refuses it, and nothing depends on it.
    faults: new Proxy(faults, {
      get: (target, key) =>
        Reflect.get(
          target.filter((fault) => !fault.startsWith("Applying inline style")),
          key,
        ),
    }),
    asked: (method) => bench.asked.filter((request) => request.method === method).map(({ params }) => params),
  };
}

/** The machine may be busy with other suites. */
export const eventually = <T>(look: () => T) => expect.poll(look, { timeout: 15_000 });

export const copied = (page: Page) => page.evaluate(() => (window as unknown as { __copied: string[] }).__copied);

export const chosenTurn = (page: Page) => page.locator(".turn-facts h2").textContent();
export const numberOf = (page: Page, column: string) => page.locator(`[data-column="${column}"]`).textContent();

type Arguments<T> = T extends [unknown, ...infer Rest] ? Rest : never;
/** Of openInspector, without the browser. */
export type OpenArguments = Arguments<Parameters<typeof openInspector>>;
