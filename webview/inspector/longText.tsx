// A text of any length: a window of it is in the document, what is left out is announced, and the window moves. Text nodes only; terminal
// colours of a tool's output are kept, its cursor movements are not.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ansiReader } from "../shared/ansi.ts";
import { Button } from "../shared/controls.tsx";
import { TerminalLine } from "../shared/terminalText.tsx";
import { countText } from "../shared/text.ts";
import type { InspectorPage } from "./page.ts";
import { inspectorWords } from "./words.ts";

const windowCharacters = 20_000;
const copyCharacters = 1_000_000;

interface LongTextProps {
  readonly page: InspectorPage;
  /** What of it is here: its beginning. */
  readonly text: string;
  readonly length: number;
  /** Characters [from, to). */
  readonly read: (from: number, to: number) => Promise<string>;
  readonly mark?: { readonly at: number; readonly length: number } | null;
  readonly terminal?: boolean;
}

export function LongText({ page, text, length, read, mark = null, terminal = false }: LongTextProps) {
  const words = inspectorWords();
  const [shown, setShown] = useState({ from: 0, text: text.slice(0, windowCharacters) });
  const marked = useRef<HTMLElement>(null);
  const moveTo = async (from: number) => {
    const start = Math.max(0, Math.min(from, length - 1));
    const end = Math.min(length, start + windowCharacters);
    try {
      setShown({ from: start, text: end <= text.length ? text.slice(start, end) : await read(start, end) });
    } catch (error) {
      page.report(error);
    }
  };
  useEffect(() => setShown({ from: 0, text: text.slice(0, windowCharacters) }), [text]);
  useEffect(() => {
    if (mark === null) return;
    if (mark.at < shown.from || mark.at + mark.length > shown.from + shown.text.length)
      void moveTo(mark.at - windowCharacters / 4);
    else marked.current?.scrollIntoView({ block: "center" });
  }, [mark, shown]);

  const end = shown.from + shown.text.length;
  const copy = async () => {
    try {
      let whole = text.slice(0, length);
      while (whole.length < length) {
        const piece = await read(whole.length, Math.min(length, whole.length + copyCharacters));
        if (piece === "") break;
        whole += piece;
      }
      page.copy(whole);
    } catch (error) {
      page.report(error);
    }
  };
  return (
    <div class="long-text">
      <Body
        text={shown.text}
        mark={mark === null ? null : { ...mark, at: mark.at - shown.from }}
        terminal={terminal}
        marked={marked}
      />
      {(shown.from > 0 || end < length) && (
        <div class="text-bar">
          <span class="muted" role="note">
            {words.cut(countText(shown.from + 1), countText(end), countText(length))}
          </span>
          <Button disabled={shown.from === 0} onPress={() => void moveTo(shown.from - windowCharacters)}>
            {words.earlier}
          </Button>
          <Button disabled={end >= length} onPress={() => void moveTo(end)}>
            {words.later}
          </Button>
        </div>
      )}
      <button
        type="button"
        class="link copy"
        aria-label={words.copyHint}
        title={words.copyHint}
        onClick={() => void copy()}
      >
        {words.copy}
      </button>
    </div>
  );
}

interface BodyProps {
  readonly text: string;
  readonly mark: { readonly at: number; readonly length: number } | null;
  readonly terminal: boolean;
  readonly marked: { current: HTMLElement | null };
}

const movesCursor = (text: string) => ["\u001b", "\r", "\b"].some((letter) => text.includes(letter));

/** Most lines of terminal output that are styled; more than that are shown as they are. */
const mostTerminalLines = 60;

function Body({ text, mark, terminal, marked }: BodyProps) {
  const lines = useMemo(() => {
    if (!terminal || mark !== null || !movesCursor(text)) return null;
    const reader = ansiReader();
    reader.write(text);
    return [...reader.lines];
  }, [text, terminal, mark === null]);
  if (lines !== null) {
    const plain = lines.length > mostTerminalLines;
    return (
      <pre class="text">
        {lines.map((line, index) =>
          plain ? (
            `${line.map((run) => run.text).join("")}\n`
          ) : (
            <div key={index}>{line.length === 0 ? "\n" : <TerminalLine line={line} />}</div>
          ),
        )}
      </pre>
    );
  }
  if (mark === null || mark.at < 0 || mark.at >= text.length) return <pre class="text">{text}</pre>;
  return (
    <pre class="text">
      {text.slice(0, mark.at)}
      <mark ref={marked}>{text.slice(mark.at, mark.at + mark.length)}</mark>
      {text.slice(mark.at + mark.length)}
    </pre>
  );
}
