// The dashboard's state in one place: which runs, what was chosen, what is to be said. Components read its signals and call it.
import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { PageState } from "../../protocol/pageHost.ts";
import { beginHostSession } from "../shared/hostSession.ts";
import { type Opening, type Problem, problemOf } from "../shared/problem.ts";
import type { PageClient } from "../shared/rpc.ts";
import { numberText } from "../shared/text.ts";
import type { Transport } from "../shared/transport.ts";
import type { RunModel } from "./runModel.ts";
import { type FollowedRun, followRun, modelIn } from "./runStore.ts";
import { readView, type View } from "./view.ts";
import { dashboardWords } from "./words.ts";

export interface DashboardPage {
  readonly client: PageClient;
  readonly opening: ReadonlySignal<Opening>;
  readonly view: Signal<View>;
  /** The first one is the main one. */
  readonly runs: ReadonlySignal<readonly FollowedRun[]>;
  /** Step under the crosshair of all charts. */
  readonly cursor: Signal<number | null>;
  /** Milliseconds since 1970, once a second while the page is seen. */
  readonly now: ReadonlySignal<number>;
  /** For screen readers. */
  readonly said: ReadonlySignal<string>;
  readonly problem: Signal<Problem | null>;
  change(part: Partial<View>): void;
  setFolders(folders: readonly string[]): void;
  /** Tells a person of what a call was refused for. */
  report(error: unknown): void;
  say(text: string): void;
}

export function openPage(client: PageClient, transport: Transport): DashboardPage {
  const opening = signal<Opening>({ state: "opening" });
  const folders = signal<readonly string[]>([]);
  const view = signal<View>(readView({}));
  const runs = signal<readonly FollowedRun[]>([]);
  const now = signal(Date.now());
  const said = signal("");
  const problem = signal<Problem | null>(null);
  const pageState = computed<PageState>(() => ({ page: "dashboard", folders: [...folders.value], view: view.value }));

  const setFolders = (next: readonly string[]) => {
    const unique = [...new Set(next)];
    const held = new Map(runs.peek().map((run) => [run.folder, run]));
    for (const run of runs.peek()) if (!unique.includes(run.folder)) run.dispose();
    folders.value = unique;
    runs.value = unique.map((folder) => held.get(folder) ?? followRun(client, folder));
  };
  const show = (state: PageState) => {
    if (state.page !== "dashboard") return;
    view.value = readView(state.view);
    setFolders(state.folders);
    opening.value = { state: "open" };
  };

  beginHostSession(client, transport, {
    state: pageState,
    show,
    failed: (why) => {
      opening.value = { state: "failed", ...why };
    },
  });

  window.setInterval(() => {
    if (document.visibilityState === "visible") now.value = Date.now();
  }, 1000);

  let before: RunModel | null = null;
  effect(() => {
    const main = runs.value[0];
    const model = main === undefined ? null : modelIn(main.state.value);
    if (model !== null) {
      const text = changeText(before?.summary.folder === model.summary.folder ? before : null, model);
      if (text !== null) said.value = text;
      document.title = `${model.summary.recipe} · ${dashboardWords().status[model.summary.status]}`;
    }
    before = model;
  });

  return {
    client,
    opening,
    view,
    runs,
    cursor: signal<number | null>(null),
    now,
    said,
    problem,
    change: (part) => {
      view.value = { ...view.peek(), ...part };
    },
    setFolders,
    report: (error) => {
      problem.value = problemOf(error);
    },
    say: (text) => {
      said.value = text;
    },
  };
}

/** What of a change is worth interrupting a screen reader for; null: nothing. */
function changeText(before: RunModel | null, after: RunModel): string | null {
  if (before === null) return null;
  const words = dashboardWords();
  if (before.summary.status !== after.summary.status) {
    return words.said.status(after.summary.recipe, words.status[after.summary.status]);
  }
  const evaluation = after.evaluations.at(-1);
  if (evaluation !== undefined && after.evaluations.length > before.evaluations.length) {
    return words.said.evaluated(String(evaluation.step), numberText(evaluation.scores["score"]));
  }
  const [advisory] = after.summary.advisories.filter(
    (one) => one.inForce && !before.summary.advisories.some((known) => known.kind === one.kind && known.inForce),
  );
  return advisory?.sentence ?? null;
}
