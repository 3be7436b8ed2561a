// Follows the runs that the dashboard shows, from their cursors, over every connection. Views read signals; nothing else asks the
// daemon for a run's state.
import { type ReadonlySignal, signal } from "@preact/signals";
import type { JournalError, JournalEventOf } from "../../protocol/journal.ts";
import type { RunDelta } from "../../protocol/runView.ts";
import { type PageClient, PageError } from "../shared/rpc.ts";
import { BucketStore } from "./bucketStore.ts";
import { modelOf, type RunModel, withEvents } from "./runModel.ts";

export type RunState =
  | { readonly state: "loading" }
  | { readonly state: "ready"; readonly model: RunModel }
  /** Its folder is not there any more; what was read stays to be seen. */
  | { readonly state: "gone"; readonly model: RunModel | null; readonly error: JournalError };

export interface FollowedRun {
  readonly folder: string;
  readonly state: ReadonlySignal<RunState>;
  readonly buckets: BucketStore;
  /** Changes when buckets do. */
  readonly version: ReadonlySignal<number>;
  dispose(): void;
}

export function modelIn(state: RunState): RunModel | null {
  return state.state === "loading" ? null : state.model;
}

export function followRun(client: PageClient, folder: string): FollowedRun {
  const state = signal<RunState>({ state: "loading" });
  const version = signal(0);
  let drawing = false;
  const buckets = new BucketStore(
    (request) => client.callBulk("metrics/series", { folder, ...request }),
    () => {
      if (drawing) return;
      drawing = true;
      requestAnimationFrame(() => {
        drawing = false;
        version.value += 1;
      });
    },
  );

  const take = (delta: RunDelta) => {
    if (delta.folder !== folder) return;
    const model = modelIn(state.peek());
    if (delta.kind === "gone") {
      state.value = { state: "gone", model, error: delta.error };
    } else if (delta.kind === "snapshot") {
      buckets.begin(delta.snapshot.cursor);
      state.value = { state: "ready", model: modelOf(delta.snapshot) };
      version.value += 1;
    } else if (model !== null) {
      const steps = delta.events.filter((event): event is JournalEventOf<"step"> => event.type === "step");
      buckets.addSteps(
        steps.filter((event) => event.n > model.cursor),
        delta.cursor,
      );
      state.value = { state: "ready", model: withEvents(model, delta.events, delta.summary) };
    }
  };
  const follow = () => {
    client.call("run/follow", { folder, cursor: modelIn(state.peek())?.cursor ?? null }).catch((error: unknown) => {
      // A lost connection comes back by itself, and this is asked again then.
      if (!(error instanceof PageError) || error.code === "CONNECTION_LOST") return;
      state.value = {
        state: "gone",
        model: modelIn(state.peek()),
        error: { code: error.code, message: error.message, next: error.next },
      };
    });
  };
  const stops = [
    client.on("run/delta", take),
    client.on("runs/changed", ({ changed, removed }) => {
      const summary = changed.find((run) => run.folder === folder);
      const now = state.peek();
      if (summary !== undefined && now.state === "ready") {
        state.value = { state: "ready", model: { ...now.model, summary } };
      }
      if (removed.includes(folder) && now.state === "ready") follow();
    }),
    client.epoch.subscribe((epoch) => {
      if (epoch > 0) follow();
    }),
  ];
  return {
    folder,
    state,
    version,
    buckets,
    dispose: () => {
      for (const stop of stops) stop();
      client.call("run/unfollow", { folder }).catch(() => {});
    },
  };
}
