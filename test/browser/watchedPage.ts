// A page of a browser in a theme of the editor, whose faults and whose copied texts a test can look at.
import type { Browser, Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { type EditorThemeName, openInTheme } from "./editorThemes.ts";
import { watchPage } from "./pageBench.ts";

export interface WatchedPage {
  readonly page: Page;
  /** Errors, refused policies and failed loads. */
  readonly faults: readonly string[];
  /** Texts that the page put into the clipboard. */
  copied(): Promise<string[]>;
}

interface PageOptions {
  readonly theme?: EditorThemeName;
  readonly viewport?: { readonly width: number; readonly height: number };
}

/** Ends with the test. */
export async function openWatchedPage(browser: Browser, options: PageOptions): Promise<WatchedPage> {
  const page = await browser.newPage({ viewport: options.viewport ?? { width: 1280, height: 860 } });
  onTestFinished(() => page.close());
  const faults = watchPage(page);
  await openInTheme(page, options.theme ?? "dark");
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
