// How a page begins with its host: asks what to show, in which language, and hears when something else is to be shown.
import type { ReadonlySignal } from "@preact/signals";
import type { PageState } from "../../protocol/pageHost.ts";
import { type Problem, problemOf } from "./problem.ts";
import { type PageClient, PageError } from "./rpc.ts";
import { keepState, restoredState } from "./state.ts";
import { language, languageOf } from "./text.ts";
import type { Transport } from "./transport.ts";

export interface HostSession {
  readonly state: ReadonlySignal<PageState>;
  show(state: PageState): void;
  /** The connection is there again; what was shown still is. */
  again?(): void;
  failed(problem: Problem): void;
}

/** Lasts as long as the page. */
export function beginHostSession(client: PageClient, transport: Transport, session: HostSession): void {
  let ready = false;
  const open = async () => {
    try {
      const { state, locale } = await client.call("host/ready", {});
      language.value = languageOf(locale);
      document.documentElement.lang = language.value;
      if (ready) return void session.again?.();
      ready = true;
      session.show(restoredState(transport, state));
      keepState(client, transport, session.state);
    } catch (error) {
      if (!ready && !(error instanceof PageError && error.code === "CONNECTION_LOST")) session.failed(problemOf(error));
    }
  };
  // A browser's connection begins anew each time; the editor's stays while its daemon comes and goes.
  client.epoch.subscribe((epoch) => {
    if (epoch > 0) void open();
  });
  client.on("host/show", ({ state }) => session.show(state));
}
