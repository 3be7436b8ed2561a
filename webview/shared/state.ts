// What the page keeps over a reload: written to the editor's own store (or the tab's), and told to the host, which can restore
// the page after a restart. Only what a person chose is kept; data are read again.
import { effect, type ReadonlySignal } from "@preact/signals";
import { type PageState, pageStateSchema } from "../../protocol/pageHost.ts";
import type { PageClient } from "./rpc.ts";
import type { Transport } from "./transport.ts";

const quietMilliseconds = 250;

/** What the page itself kept, if it is of the same thing that the host wants shown; else what the host says. */
export function restoredState(transport: Transport, fromHost: PageState): PageState {
  const kept = pageStateSchema.safeParse(transport.readState());
  if (!kept.success || subject(kept.data) !== subject(fromHost)) return fromHost;
  return { ...fromHost, view: { ...fromHost.view, ...kept.data.view } };
}

function subject(state: PageState): string {
  return JSON.stringify(state.page === "dashboard" ? [state.page, state.folders[0]] : [state.page, state.source]);
}

/** Keeps every change, a moment after the last one, and at once when the page is hidden. @returns ends it */
export function keepState(client: PageClient, transport: Transport, state: ReadonlySignal<PageState>): () => void {
  let timer: number | undefined;
  let written = "";
  const write = () => {
    window.clearTimeout(timer);
    timer = undefined;
    const text = JSON.stringify(state.peek());
    if (text === written) return;
    written = text;
    transport.writeState(state.peek());
    client.call("host/keepState", { state: state.peek() }).catch(() => {
      written = "";
    });
  };
  const stop = effect(() => {
    state.value;
    window.clearTimeout(timer);
    timer = window.setTimeout(write, quietMilliseconds);
  });
  const hidden = () => {
    if (document.visibilityState === "hidden") write();
  };
  document.addEventListener("visibilitychange", hidden);
  window.addEventListener("pagehide", write);
  return () => {
    stop();
    window.clearTimeout(timer);
    document.removeEventListener("visibilitychange", hidden);
    window.removeEventListener("pagehide", write);
  };
}
