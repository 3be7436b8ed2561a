// What the page keeps over a reload: written to the editor's own store (or the tab's), and told to the host, which can restore
// the page after a restart. Only what a person chose is kept; data are read again.
import { effect, type ReadonlySignal, untracked } from "@preact/signals";
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

/**
 * Keeps a change at once, since a page that is covered by another is gone without a word, and what follows within a moment when the
 * moment is over: a chart that is dragged changes with every frame. @returns ends it
 */
export function keepState(client: PageClient, transport: Transport, state: ReadonlySignal<PageState>): () => void {
  let timer: number | undefined;
  let written = "";
  const write = (): boolean => {
    const text = JSON.stringify(state.peek());
    if (text === written) return false;
    written = text;
    transport.writeState(state.peek());
    client.call("host/keepState", { state: state.peek() }).catch(() => {
      written = "";
    });
    return true;
  };
  const writeAndRest = () => {
    timer = write() ? window.setTimeout(writeAndRest, quietMilliseconds) : undefined;
  };
  const stop = effect(() => {
    state.value;
    if (timer === undefined) untracked(writeAndRest);
  });
  window.addEventListener("pagehide", write);
  return () => {
    stop();
    window.clearTimeout(timer);
    window.removeEventListener("pagehide", write);
  };
}
