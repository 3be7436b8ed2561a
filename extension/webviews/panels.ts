// The webview panels of this window: dashboards, one a run, and inspectors, of which one is the preview that lists write into. Owns their
// state over hiding and reload; what pages ask is answered by their relay.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { AdvisoryLink } from "../../protocol/advisory.ts";
import { pageDocument } from "../../protocol/pageDocument.ts";
import { type PageState, pageStateSchema } from "../../protocol/pageHost.ts";
import type { TrajectorySource } from "../../protocol/trajectoryView.ts";
import { panelTypes } from "../contributions.ts";
import type { DaemonConnection } from "../daemon/connection.ts";
import { followOver } from "./connectionFollowers.ts";
import { type AnswerHost, createPageRelay, type PageRelay } from "./pageRelay.ts";

export interface PanelServices {
  readonly context: vscode.ExtensionContext;
  readonly connection: DaemonConnection;
  readonly log: vscode.LogOutputChannel;
  /** host/* but those about the page's own state. */
  readonly answerHost: AnswerHost;
}

interface Opened {
  readonly panel: vscode.WebviewPanel;
  readonly relay: PageRelay;
  state: PageState;
}

/** The state of a panel in the window's memory. */
interface Remembered {
  readonly type: string;
  readonly title: string;
  readonly state: PageState;
}
const keptAs = "rollscope.panels";
const mostKept = 20;

export interface Panels {
  readonly openDashboard: (folders: readonly string[], view?: Readonly<Record<string, unknown>>) => void;
  readonly openInspector: (
    source: TrajectorySource,
    title: string,
    options?: { readonly beside?: boolean; readonly view?: Readonly<Record<string, unknown>> },
  ) => void;
  /** After a reload. */
  readonly restore: (panel: vscode.WebviewPanel, state: unknown) => void;
  /** A trajectory file in its own editor. */
  readonly fillEditor: (panel: vscode.WebviewPanel, source: TrajectorySource) => void;
}

/** Name of a folder or file, for titles. */
function lastPart(path: string): string {
  return path.split(/[\\/]/).filter(Boolean).at(-1) ?? path;
}

export function sourceTitle(source: TrajectorySource): string {
  return source.kind === "record" ? source.record : lastPart(source.path);
}

export function createPanels(services: PanelServices): Panels {
  const { context, connection, log } = services;
  const opened = new Set<Opened>();
  const followers = followOver(connection);
  const root = vscode.Uri.joinPath(context.extensionUri, "dist", "webview");

  // A page that was closed within a moment of its opening kept nothing itself.
  const remember = ({ panel, state }: Opened) => {
    const kept = context.workspaceState.get<readonly Remembered[]>(keptAs) ?? [];
    const others = kept.filter(({ type, title }) => type !== panel.viewType || title !== panel.title);
    void context.workspaceState.update(
      keptAs,
      [{ type: panel.viewType, title: panel.title, state }, ...others].slice(0, mostKept),
    );
  };
  const recall = (panel: vscode.WebviewPanel): unknown =>
    (context.workspaceState.get<readonly Remembered[]>(keptAs) ?? []).find(
      ({ type, title }) => type === panel.viewType && title === panel.title,
    )?.state;

  const titleOf = (state: PageState) =>
    state.page === "dashboard" ? dashboardTitle(state.folders) : sourceTitle(state.source);

  const fill = (panel: vscode.WebviewPanel, state: PageState): Opened => {
    const { webview } = panel;
    webview.options = { enableScripts: true, localResourceRoots: [root] };
    const relay = createPageRelay({
      connection,
      followers,
      log,
      mayRun: () => vscode.workspace.isTrusted,
      post: (message) => void webview.postMessage(message),
      answerHost: async (method, params) => {
        if (method === "host/ready") return { state: here.state, locale: vscode.env.language, host: "editor" };
        if (method === "host/keepState") {
          here.state = (params as { state: PageState }).state;
          remember(here);
          return {};
        }
        return await services.answerHost(method, params);
      },
    });
    const here: Opened = { panel, relay, state };
    opened.add(here);
    remember(here);
    const listening = webview.onDidReceiveMessage(relay.onMessage);
    panel.onDidChangeViewState(() => {
      // A hidden page is gone; it reads again what it shows when it comes back.
      if (!panel.visible) relay.reset();
    });
    panel.onDidDispose(() => {
      opened.delete(here);
      listening.dispose();
      relay.dispose();
    });
    const file = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(root, name)).toString();
    webview.html = pageDocument({
      page: state.page,
      title: titleOf(state),
      language: vscode.env.language,
      nonce: randomBytes(18).toString("base64url"),
      script: file(`${state.page}.js`),
      style: file(`${state.page}.css`),
      source: webview.cspSource,
      socket: null,
    });
    return here;
  };

  const create = (state: PageState, column: vscode.ViewColumn): Opened => {
    const panel = vscode.window.createWebviewPanel(panelTypes[state.page], titleOf(state), column, {
      enableScripts: true,
      localResourceRoots: [root],
      enableFindWidget: false,
    });
    panel.iconPath = vscode.Uri.joinPath(context.extensionUri, "media", "icon.png");
    return fill(panel, state);
  };

  const show = (here: Opened, state: PageState, title: string) => {
    here.state = state;
    here.panel.title = title;
    remember(here);
    here.panel.reveal(undefined, false);
    here.relay.notify("host/show", { state });
  };

  return {
    openDashboard: (folders, view = {}) => {
      const known = [...opened].find(({ state }) => state.page === "dashboard" && state.folders[0] === folders[0]);
      if (known === undefined || known.state.page !== "dashboard") {
        create({ page: "dashboard", folders: [...folders], view }, vscode.ViewColumn.Active);
        return;
      }
      const overlaid = folders.length > 1 ? [...folders] : known.state.folders;
      if (folders.length === 1 && Object.keys(view).length === 0) known.panel.reveal(undefined, false);
      else
        show(
          known,
          { page: "dashboard", folders: overlaid, view: { ...known.state.view, ...view } },
          dashboardTitle(overlaid),
        );
    },
    openInspector: (source, title, options = {}) => {
      const state: PageState = { page: "inspector", source, view: { sampled: true, ...options.view } };
      const preview = [...opened].find(
        ({ state: { page }, panel }) => page === "inspector" && panel.viewType === panelTypes.inspector,
      );
      if (preview !== undefined && options.beside !== true) return show(preview, state, title);
      const created = create(state, options.beside === true ? vscode.ViewColumn.Beside : vscode.ViewColumn.Active);
      created.panel.title = title;
      remember(created);
    },
    restore: (panel, kept) => {
      const own = pageStateSchema.safeParse(kept);
      const state = own.success ? own : pageStateSchema.safeParse(recall(panel));
      if (state.success) fill(panel, state.data);
      // Nothing is known of what it showed: an empty panel would only puzzle.
      else panel.dispose();
    },
    fillEditor: (panel, source) => void fill(panel, { page: "inspector", source, view: {} }),
  };
}

function dashboardTitle(folders: readonly string[]): string {
  const first = lastPart(folders[0] ?? "Run");
  return folders.length > 1 ? `${first} and ${folders.length - 1} more` : first;
}

/** Where an advisory's link leads on the dashboard itself. */
export function dashboardView(link: AdvisoryLink | null): Readonly<Record<string, unknown>> {
  return link?.kind === "metric" ? { metric: link.metric } : {};
}
