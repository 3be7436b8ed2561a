// The two small windows of the page: the list of keys, and "go to".
import { useEffect, useRef, useState } from "preact/hooks";
import { Button, TextField } from "../shared/controls.tsx";
import type { InspectorPage } from "./page.ts";
import { readPlace } from "./tokenText.ts";
import { inspectorWords } from "./words.ts";

interface PageProps {
  readonly page: InspectorPage;
}

export function Dialogs({ page }: PageProps) {
  const open = page.dialog.value;
  return open === null ? null : <Window key={open} page={page} kind={open} />;
}

function Window({ page, kind }: PageProps & { readonly kind: "help" | "go" }) {
  const words = inspectorWords();
  const element = useRef<HTMLDialogElement>(null);
  const close = () => {
    page.dialog.value = null;
  };
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    element.current?.querySelector<HTMLElement>("vscode-text-field, vscode-button")?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} class="window" aria-label={kind === "help" ? words.help : words.go} onClose={close}>
      {kind === "help" ? <Keys /> : <GoTo page={page} close={close} />}
      <Button look="icon" label={words.close} onPress={close}>
        ×
      </Button>
    </dialog>
  );
}

function Keys() {
  const words = inspectorWords();
  return (
    <dl class="key-list">
      {words.keys.map(([keys, does]) => (
        <div key={keys}>
          <dt class="mono">{keys}</dt>
          <dd>{does}</dd>
        </div>
      ))}
    </dl>
  );
}

function GoTo({ page, close }: PageProps & { readonly close: () => void }) {
  const words = inspectorWords();
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState(false);
  const go = () => {
    const place = readPlace(text);
    const turnCount = page.outline.peek()?.turnCount ?? 0;
    if (place === null || (place.kind === "turn" && place.number >= turnCount)) return setWrong(true);
    close();
    if (place.kind === "turn") page.chooseTurn(place.number);
    else page.chooseToken(place.number).catch(page.report);
  };
  return (
    <div class="go-to">
      <TextField label={words.goLabel} value={text} onInput={setText} onEnter={go} />
      <Button look="primary" onPress={go}>
        {words.goTo}
      </Button>
      <p class={wrong ? "error-text" : "muted"} role={wrong ? "alert" : undefined}>
        {wrong ? words.goWrong : words.goHint}
      </p>
    </div>
  );
}
