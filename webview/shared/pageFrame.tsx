// What every page has around its own content: whether the connection is there, how opening went, what was refused last, and what
// screen readers are told.
import type { ReadonlySignal, Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Button } from "./controls.tsx";
import type { Opening, Problem } from "./problem.ts";
import type { PageClient } from "./rpc.ts";

interface FrameWords {
  readonly lost: string;
  readonly failedTitle: string;
  readonly loading: string;
  readonly connecting: string;
}

interface FrameProps {
  /** Class of the whole. */
  readonly name: string;
  readonly page: {
    readonly client: PageClient;
    readonly opening: ReadonlySignal<Opening>;
    readonly said: ReadonlySignal<string>;
  };
  readonly words: FrameWords;
  /** null: there is nothing to show yet. */
  readonly content: ComponentChildren | null;
  readonly children?: ComponentChildren;
}

export function PageFrame({ name, page, words, content, children }: FrameProps) {
  const opening = page.opening.value;
  const connection = page.client.connection.value;
  return (
    <div class={name}>
      {connection.state === "lost" && (
        <p class="banner warning" role="alert">
          {words.lost} {connection.message}
        </p>
      )}
      {opening.state === "failed" ? (
        <Notice title={words.failedTitle} text={`${opening.message} ${opening.next}`} />
      ) : content === null ? (
        <Notice title={connection.state === "connected" ? words.loading : words.connecting} text="" />
      ) : (
        content
      )}
      {children}
      <div class="visually-hidden" role="status">
        {page.said.value}
      </div>
    </div>
  );
}

export function Notice({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <div class="notice">
      <p>{title}</p>
      {text !== "" && <p class="muted">{text}</p>}
    </div>
  );
}

/** What was refused last, until it is closed. */
export function ProblemBanner({
  problem,
  close,
}: {
  readonly problem: Signal<Problem | null>;
  readonly close: string;
}) {
  const shown = problem.value;
  if (shown === null) return null;
  const forget = () => {
    problem.value = null;
  };
  return (
    <p class="banner error" role="alert">
      <span>
        {shown.message} {shown.next}
      </span>
      <Button look="icon" label={close} onPress={forget}>
        ×
      </Button>
    </p>
  );
}
