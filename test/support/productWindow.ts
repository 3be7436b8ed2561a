// A window of a real editor with the product installed, and names for what a person sees of it: views, dashboard, inspector. What a test
// compares it with comes from the payload's own command line, in the same home.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { FrameLocator, Locator } from "playwright-core";
import { installPayload, productVsix } from "./installedProduct.ts";
import type { HomeProcess } from "./temporaryHome.ts";
import { startVSCode, type VSCode, type VSCodeOptions } from "./vscode.ts";

export interface ProductOptions extends Omit<VSCodeOptions, "folder" | "extensions" | "prepare"> {
  /** Of the folder that the window opens. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Without it the extension finds no program that runs recipes. Default true. */
  readonly payload?: boolean;
  /** Called before the editor starts, when payload and files are there. */
  readonly before?: (product: Pick<ProductWindow, "folder" | "rollscope">) => Promise<void>;
}

export interface ProductWindow {
  readonly vscode: VSCode;
  readonly folder: string;
  /** Where the payload lies, or would lie. */
  readonly payload: string;
  /** Runs the payload's command line and returns what it printed. */
  readonly rollscope: (...args: string[]) => Promise<string>;
  /** Opens Rollscope's container in the activity bar. */
  readonly openViews: () => Promise<void>;
  /** The first line of a view with this text. */
  readonly line: (text: string | RegExp) => Locator;
  /** A view's header, with its description. */
  readonly header: (view: string) => Locator;
  /** Runs Run Recipe and chooses the recipe with this name. */
  readonly runRecipe: (name: string) => Promise<void>;
  /** The dashboard of a run of this recipe; it must be in sight. */
  readonly dashboard: (recipe: string) => Promise<FrameLocator>;
  /** The inspector that is in sight. */
  readonly inspector: () => Promise<FrameLocator>;
  /** Step that the Runs view shows of a run with so many. */
  readonly stepInView: (steps: number) => Promise<number>;
  /** The daemon's process, without the bridges to it. */
  readonly daemons: () => readonly HomeProcess[];
  readonly dispose: () => Promise<void>;
}

/** Records are called `t3-17-s0`, held-out ones `h0-1-s0`. */
export const recordTitle = /^[th]\d+-/;

export async function startProduct(options: ProductOptions = {}): Promise<ProductWindow> {
  const { files = {}, payload: withPayload = true, before, ...rest } = options;
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), "rollscope-window-")));
  const folder = join(scratch, "work");
  mkdirSync(folder);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  let payload = "";
  let rollscope: ProductWindow["rollscope"] = async () => "";
  try {
    const vscode = await startVSCode({
      ...rest,
      folder,
      extensions: [productVsix()],
      prepare: async (home) => {
        if (!withPayload) return;
        payload = installPayload(home);
        rollscope = async (...args) => {
          const env = { ...home.environment };
          const program = [join(payload, "dist", "cli.mjs"), ...args];
          return (await promisify(execFile)(process.execPath, program, { cwd: folder, env, maxBuffer: 1e8 })).stdout;
        };
        await before?.({ folder, rollscope });
      },
    });
    return windowOf(
      vscode,
      scratch,
      folder,
      () => payload,
      (...args) => rollscope(...args),
    );
  } catch (cause) {
    rmSync(scratch, { recursive: true, force: true });
    throw cause;
  }
}

function windowOf(
  vscode: VSCode,
  scratch: string,
  folder: string,
  payload: () => string,
  rollscope: ProductWindow["rollscope"],
): ProductWindow {
  const line = (text: string | RegExp) => vscode.page.locator(".sidebar .monaco-list-row", { hasText: text }).first();
  const header = (view: string) => vscode.page.locator(".sidebar .pane-header", { hasText: view });
  return {
    vscode,
    folder,
    get payload() {
      return payload();
    },
    rollscope,
    line,
    header,
    openViews: async () => {
      await vscode.runCommand("View: Show Rollscope");
      await header("Trajectories").waitFor();
    },
    runRecipe: async (name) => {
      await vscode.runCommand("Rollscope: Run Recipe");
      await vscode.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().click();
    },
    dashboard: (recipe) => vscode.webview(new RegExp(`^${recipe}`)),
    inspector: () => vscode.webview(recordTitle),
    stepInView: async (steps) => {
      const text = (await line(new RegExp(`\\d+/${steps}\\b`)).textContent()) ?? "";
      return Number(new RegExp(`(\\d+)/${steps}\\b`).exec(text)?.[1]);
    },
    daemons: () =>
      vscode.home.processes().filter(({ command }) => command.includes("daemon") && !command.includes("stdio")),
    dispose: async () => {
      await vscode.dispose();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}
