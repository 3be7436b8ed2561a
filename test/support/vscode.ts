// A real VS Code in an empty home, driven as a person drives it: code-server and Chromium. Every wait is for something
// that is seen; what a test does not dispose ends with its file (editorHooks.ts).
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Browser, Frame, FrameLocator, Locator, Page } from "playwright-core";
import { launchChromium } from "./chromium.ts";
import { listening, quietSettings, settingsPath, writeSettings } from "./codeServer.ts";
import { TemporaryHome } from "./temporaryHome.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const cache = process.env["ROLLSCOPE_SETUP_CACHE"] ?? join(repository, ".cache");
const codeServer = join(cache, "code-server", "node_modules", "code-server", "out", "node", "entry.js");
const screenshots = join(repository, ".test-results", "vscode");

export const themes = {
  light: { label: "Light Modern", seen: "vs" },
  dark: { label: "Dark Modern", seen: "vs-dark" },
  "high-contrast": { label: "Dark High Contrast", seen: "hc-black" },
  "high-contrast-light": { label: "Light High Contrast", seen: "hc-light" },
} as const;
export type ThemeName = keyof typeof themes;

export interface VSCodeOptions {
  /** Opened in the window. */
  readonly folder: string;
  /** Files of extensions, installed before the start. */
  readonly extensions?: readonly string[];
  readonly settings?: Readonly<Record<string, unknown>>;
  /** "granted" turns workspace trust off; with "asked" the editor asks, as for every new folder. Default "granted". */
  readonly trust?: "granted" | "asked";
  /** Of the editor and of all that it starts; beside PATH, HOME, LANG and XDG_RUNTIME_DIR nothing else is there. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly viewport?: { readonly width: number; readonly height: number };
  /** Called with the home before the editor starts: put files there. */
  readonly prepare?: (home: TemporaryHome) => void | Promise<void>;
}

const open = new Set<VSCode>();

/** The editors that run now; for editorHooks.ts. */
export function openEditors(): readonly VSCode[] {
  return [...open];
}

/** Starts the editor and returns when its window has the folder and its extensions. */
export async function startVSCode(options: VSCodeOptions): Promise<VSCode> {
  const home = new TemporaryHome(options.environment);
  let vscode: VSCode | undefined;
  try {
    writeSettings(home, { ...quietSettings, ...options.settings });
    await options.prepare?.(home);
    for (const extension of options.extensions ?? []) {
      await promisify(execFile)(process.execPath, [codeServer, "--install-extension", extension], {
        env: home.environment,
      });
    }
    const server = spawn(process.execPath, [codeServer, ...serverArguments(options)], {
      cwd: home.path,
      env: home.environment,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { address, log } = await listening(server);
    const browser = await launchChromium({ environment: home.environment });
    vscode = new VSCode(options, home, server, address, log, browser);
    open.add(vscode);
    await vscode.openWindow();
    return vscode;
  } catch (cause) {
    if (vscode === undefined) await home.dispose();
    else {
      await vscode.screenshot("failed-to-start").catch(() => {});
      await vscode.dispose();
    }
    throw cause;
  }
}

export class VSCode {
  readonly home: TemporaryHome;
  readonly #options: VSCodeOptions;
  readonly #server: ChildProcess;
  readonly #address: string;
  readonly #log: () => string;
  readonly #browser: Browser;
  #page: Page | undefined;

  constructor(
    options: VSCodeOptions,
    home: TemporaryHome,
    server: ChildProcess,
    address: string,
    log: () => string,
    browser: Browser,
  ) {
    this.#options = options;
    this.home = home;
    this.#server = server;
    this.#address = address;
    this.#log = log;
    this.#browser = browser;
  }

  /** The window's page, for all that has no method here. */
  get page(): Page {
    if (this.#page === undefined) throw new Error("the window is closed; openWindow opens one");
    return this.#page;
  }

  /** What the server wrote to its terminal. */
  get log(): string {
    return this.#log();
  }

  /** Opens a window on the folder; the first one is open after the start. */
  async openWindow(): Promise<void> {
    const page = await this.#browser.newPage({ viewport: this.#options.viewport ?? { width: 1440, height: 900 } });
    page.setDefaultTimeout(30_000);
    this.#page = page;
    await page.goto(`${this.#address}?folder=${encodeURIComponent(this.#options.folder)}`);
    await this.#ready();
  }

  /** Closes the window as a person does; server, daemon and runs stay. */
  async closeWindow(): Promise<void> {
    await this.page.close({ runBeforeUnload: false });
    this.#page = undefined;
  }

  /** The same as *Developer: Reload Window*. */
  async reload(): Promise<void> {
    await this.page.reload();
    await this.#ready();
  }

  /** The page's own marks say that the workbench stands and that the extensions' contributions are known. */
  async #ready(): Promise<void> {
    await this.page.locator(".monaco-workbench .part.statusbar").waitFor();
    await this.page.waitForFunction(
      `["code/didStartWorkbench", "code/didLoadExtensions"].every((mark) => performance.getEntriesByName(mark).length > 0)`,
    );
  }

  /** Runs a command by its full title, `Rollscope: Run Recipe`, from the palette. */
  async runCommand(title: string): Promise<void> {
    const deadline = Date.now() + 60_000;
    for (;;) {
      const row = await this.#offered(`>${title}`, title);
      try {
        await row.click({ timeout: 2_000 });
        return await row.waitFor({ state: "hidden" });
      } catch (cause) {
        // An editor that has just opened took the focus, which closes the palette: a person opens it again.
        if (Date.now() > deadline || (await row.isVisible())) throw cause;
      }
    }
  }

  /** Whether the palette offers a command with this full title now. */
  async offersCommand(title: string): Promise<boolean> {
    await this.#type(`>${title}`);
    await this.page.locator(".quick-input-list .monaco-list-row").first().waitFor();
    const found = await this.#row(title).count();
    await this.page.keyboard.press("Escape");
    return found > 0;
  }

  /** Opens a file of the folder, by its path in it, with the keyboard. */
  async openFile(path: string): Promise<void> {
    const row = await this.#offered(path, basename(path));
    await row.click();
    await this.tab(basename(path)).waitFor();
  }

  /** The tab of an editor, by its label. */
  tab(label: string): Locator {
    return this.page.locator(".tabs-container .tab", { has: this.page.getByText(label, { exact: true }) });
  }

  /** Chooses an entry of the list that a command shows. */
  async pick(label: string): Promise<void> {
    await this.#row(label).click();
  }

  /** Answers the text box that a command shows. */
  async answer(text: string): Promise<void> {
    await this.page.locator(".quick-input-widget:visible input").fill(text);
    await this.page.keyboard.press("Enter");
  }

  /** The notification with this text, as it pops up. */
  notification(text: string | RegExp): Locator {
    return this.page.locator(".notifications-toasts .notification-list-item", { hasText: text });
  }

  /** The texts of all notifications that were not dismissed, newest first. */
  async notifications(): Promise<string[]> {
    return await this.#inCentre((items) => items.locator(".notification-list-item-message").allInnerTexts());
  }

  /** Those of them that offer nothing to do but to dismiss them. */
  async notificationsWithoutAction(): Promise<string[]> {
    return await this.#inCentre((items) =>
      items
        .filter({ hasNot: this.page.locator(".notification-list-item-buttons-container .monaco-button") })
        .locator(".notification-list-item-message")
        .allInnerTexts(),
    );
  }

  async #inCentre<T>(read: (items: Locator) => Promise<T>): Promise<T> {
    await this.runCommand("Notifications: Show Notifications");
    const centre = this.page.locator(".notifications-center.visible");
    await centre.waitFor();
    const found = await read(centre.locator(".notification-list-item"));
    await this.page.keyboard.press("Escape");
    await centre.waitFor({ state: "hidden" });
    return found;
  }

  /** The item of the status bar with this text or accessible name. */
  statusItem(text: string | RegExp): Locator {
    return this.page.locator(".part.statusbar .statusbar-item", { hasText: text });
  }

  /**
   * The page inside the webview that is shown now; with several, the one whose title matches. What is located in it is
   * waited for. After a reload of the window, ask again.
   */
  async webview(title: string | RegExp = ""): Promise<FrameLocator> {
    const { outer } = await this.#shownWebview(title);
    return outer.contentFrame().locator("iframe#active-frame").contentFrame();
  }

  /** The same as a frame, for `evaluate`. It is gone when the page is loaded anew. */
  async webviewFrame(title: string | RegExp = ""): Promise<Frame> {
    const { inner } = await this.#shownWebview(title);
    return inner;
  }

  /** An outer frame has only a random name; the title stands on the frame in it. */
  async #shownWebview(title: string | RegExp): Promise<{ readonly outer: Locator; readonly inner: Frame }> {
    const shown = this.page.locator("iframe.webview.ready:visible");
    const deadline = Date.now() + 90_000;
    let patience = Date.now() + 8_000;
    for (;;) {
      await shown.first().waitFor();
      for (const name of await shown.evaluateAll((frames) => frames.map((frame) => frame.getAttribute("name")))) {
        const outer = this.page.locator(`iframe.webview[name="${name}"]`);
        const active = outer.contentFrame().locator("iframe#active-frame");
        if ((await active.count()) === 0) continue;
        // A page that is loaded anew is gone for a moment.
        const found = await active.getAttribute("title", { timeout: 1_000 }).catch(() => null);
        const named = found ?? "";
        if (typeof title === "string" ? !named.includes(title) : !title.test(named)) continue;
        const inner = await (await active.elementHandle())?.contentFrame();
        if (inner !== null && inner !== undefined) {
          await inner.waitForLoadState();
          return { outer, inner };
        }
      }
      if (Date.now() > deadline) throw new Error(`no webview with the title ${title} is shown`);
      if (Date.now() > patience && (await this.#hasStuckWebview())) {
        await this.runCommand("Developer: Reload Webviews");
        patience = Date.now() + 8_000;
      }
      await new Promise((next) => setTimeout(next, 50));
    }
  }

  /**
   * This editor serves all webviews from one origin, where each replaces the service worker of the others; now and then one waits for
   * its own for ever, before anything of the extension is in it. A person has a command for that. It loads all of them at once, so that
   * on a busy machine the same can happen again.
   */
  async #hasStuckWebview(): Promise<boolean> {
    for (const outer of await this.page.locator("iframe.webview.ready:visible").all()) {
      const inner = outer.contentFrame().locator("iframe#active-frame, iframe#pending-frame");
      if ((await inner.count()) === 0) return true;
    }
    return false;
  }

  async useTheme(theme: ThemeName): Promise<void> {
    const { label, seen } = themes[theme];
    await this.runCommand("Preferences: Color Theme");
    await this.page.locator(".quick-input-widget:visible input").fill(label);
    await this.pick(label);
    await this.page.locator(`.monaco-workbench.${seen}`).first().waitFor();
    await this.page.locator(".quick-input-widget").first().waitFor({ state: "hidden" });
  }

  /** Changes settings of the user, and loads the window anew: this editor does not watch the file. */
  async changeSettings(changes: Readonly<Record<string, unknown>>): Promise<void> {
    const now = JSON.parse(readFileSync(settingsPath(this.home), "utf8")) as Record<string, unknown>;
    writeSettings(this.home, { ...now, ...changes });
    await this.reload();
  }

  /** Writes .test-results/vscode/NAME.png, of the window or of a part of it, in pixels, and returns its path. */
  async screenshot(
    name: string,
    clip?: { readonly x: number; readonly y: number; readonly width: number; readonly height: number },
  ): Promise<string> {
    const path = join(screenshots, `${name}.png`);
    mkdirSync(dirname(path), { recursive: true });
    await this.page.screenshot({ path, ...(clip === undefined ? {} : { clip }) });
    return path;
  }

  /** Ends the browser, the server and all that was started in the home, and removes the home. */
  async dispose(): Promise<void> {
    if (!open.delete(this)) return;
    await this.#browser.close();
    if (this.#server.exitCode === null && this.#server.signalCode === null) {
      const ended = new Promise((resolve) => this.#server.once("exit", resolve));
      this.#server.kill("SIGTERM");
      await ended;
    }
    await this.home.dispose();
  }

  async #type(text: string): Promise<void> {
    const input = this.page.locator(".quick-input-widget:visible input");
    if ((await input.count()) > 0) await this.page.keyboard.press("Escape");
    await this.page.keyboard.press(text.startsWith(">") ? "F1" : "Control+P");
    await input.fill(text);
  }

  #row(label: string): Locator {
    const exact = new RegExp(`^${label.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`);
    return this.page.locator(".quick-input-list .monaco-list-row", {
      has: this.page.locator(".label-name", { hasText: exact }),
    });
  }

  /** The list does not follow what becomes known after it was opened, so it is opened until it has the row. */
  async #offered(text: string, label: string): Promise<Locator> {
    const row = this.#row(label).first();
    const deadline = Date.now() + 30_000;
    for (;;) {
      await this.#type(text);
      try {
        await row.waitFor({ timeout: 2_000 });
        return row;
      } catch (cause) {
        if (Date.now() > deadline) throw cause;
      }
    }
  }
}

function serverArguments(options: VSCodeOptions): string[] {
  return [
    "--auth=none",
    "--bind-addr=127.0.0.1:0",
    "--disable-telemetry",
    "--disable-update-check",
    "--disable-getting-started-override",
    ...(options.trust === "asked" ? [] : ["--disable-workspace-trust"]),
  ];
}
