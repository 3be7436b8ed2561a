// The chosen turn: as chat (reasoning folded, images, tool calls with their results) or raw, as the model was shown it.
import { useEffect, useRef, useState } from "preact/hooks";
import type { SearchPlace } from "../../protocol/daemonMethods.ts";
import type { TurnPart, TurnView } from "../../protocol/trajectoryView.ts";
import { countText, durationText, numberText } from "../shared/text.ts";
import { ImagePart } from "./imagePart.tsx";
import { LongText } from "./longText.tsx";
import type { InspectorPage, Mark } from "./page.ts";
import { inspectorWords } from "./words.ts";

interface TurnProps {
  readonly page: InspectorPage;
  readonly turn: TurnView;
}

/** Turns around the chosen one that may hold the other half of a call. */
const pairReach = 24;

export function TurnPane({ page, raw }: { readonly page: InspectorPage; readonly raw: boolean }) {
  const words = inspectorWords();
  const turns = page.turns.value;
  turns.version.value;
  const { turn: number } = page.view.value;
  const { turnCount } = page.outline.value!;
  useEffect(() => {
    const to = Math.min(turnCount, number + 1);
    void turns.want(number, to);
  }, [turns, number, turnCount]);
  const turn = turns.get(number);
  return (
    <section class="turn-pane" aria-label={words.turn(countText(number + 1))}>
      {turn === undefined ? (
        <p class="muted">…</p>
      ) : (
        <>
          <TurnFacts page={page} turn={turn} />
          {raw ? <Raw key={number} page={page} turn={turn} /> : <Chat key={number} page={page} turn={turn} />}
        </>
      )}
    </section>
  );
}

function TurnFacts({ turn }: TurnProps) {
  const words = inspectorWords();
  const { policyVersions: versions, drift } = turn;
  const facts = [
    turn.tokens === null ? null : words.tokensOf(countText(turn.tokens.length)),
    versions === null
      ? null
      : words.policy(versions.min === versions.max ? `${versions.min}` : `${versions.min}–${versions.max}`),
    turn.temperature === null ? null : words.temperature(numberText(turn.temperature)),
    turn.finishReason === null ? null : words.finish(turn.finishReason),
    turn.started === null || turn.ended === null ? null : durationText(Math.max(0, turn.ended - turn.started)),
    turn.result?.milliseconds == null ? null : durationText(turn.result.milliseconds),
    turn.demonstration ? words.demonstration : null,
    turn.tokens !== null && !turn.trainable ? words.notTrained : null,
    drift === null ? null : words.drift(drift.kind, ""),
  ].filter((fact) => fact !== null && fact !== "");
  return (
    <div class="turn-facts">
      <h2 class={`role-${turn.role}`}>
        {countText(turn.turn + 1)} · {words.roles[turn.role]}
      </h2>
      <span class="facts muted">
        {facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
      </span>
      {turn.error !== null && <p class="fault">{turn.error.message}</p>}
    </div>
  );
}

function Raw({ page, turn }: TurnProps) {
  const words = inspectorWords();
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    page.client.call("trajectory/raw", { source: page.source.peek(), turn: turn.turn }, { signal: abort.signal }).then(
      (answer) => setText(answer.text),
      (error: unknown) => {
        if (!abort.signal.aborted) page.report(error);
      },
    );
    return () => abort.abort();
  }, []);
  if (text === null) return <p class="muted">…</p>;
  if (text === "") return <p class="muted">{words.rawEmpty}</p>;
  return (
    <LongText page={page} text={text} length={text.length} read={(from, to) => Promise.resolve(text.slice(from, to))} />
  );
}

function Chat({ page, turn }: TurnProps) {
  const words = inspectorWords();
  const turns = page.turns.value;
  const { turnCount } = page.outline.value!;
  useEffect(() => {
    if (turn.toolCalls.length > 0)
      void turns.want(turn.turn, Math.min(turnCount, turn.turn + 1 + turn.toolCalls.length));
    if (turn.role === "tool") void turns.want(Math.max(0, turn.turn - pairReach), turn.turn);
  }, [turnCount]);
  const texts = textParts(turn.parts);
  const caller = turn.role === "tool" ? callOf(page, turn) : null;
  return (
    <>
      {turn.result !== null && (
        <p class="pairing">
          <b>{words.resultOf(turn.result.name ?? caller?.call.name ?? words.call)}</b>
          {caller !== null && (
            <>
              {" "}
              <button type="button" class="link" onClick={() => page.chooseTurn(caller.turn)}>
                {words.callAt(countText(caller.turn + 1))}
              </button>{" "}
              <code class="muted ellipsis">{caller.call.arguments.slice(0, 300)}</code>
            </>
          )}
          {turn.result.error !== null && <span class="fault"> {turn.result.error}</span>}
        </p>
      )}
      {texts.map((part) => (
        <Part key={part.number} page={page} turn={turn} part={part} />
      ))}
      {texts.length === 0 && turn.toolCalls.length === 0 && <p class="muted">{words.empty}</p>}
      {turn.toolCalls.map((_call, index) => (
        <ToolCall key={index} page={page} turn={turn} index={index} />
      ))}
    </>
  );
}

interface NumberedPart {
  readonly number: number;
  readonly part: Exclude<TurnPart, { kind: "cut" }>;
  readonly cut: number;
}

/** Parts with the number that `trajectory/part` and hits know them by, and how much was cut off. */
function textParts(parts: readonly TurnPart[]): NumberedPart[] {
  const numbered: NumberedPart[] = [];
  for (const part of parts) {
    const last = numbered.at(-1);
    if (part.kind === "cut") {
      if (last !== undefined) numbered[numbered.length - 1] = { ...last, cut: part.characters };
    } else numbered.push({ number: numbered.length, part, cut: 0 });
  }
  return numbered;
}

function Part({ page, turn, part: { number, part, cut } }: TurnProps & { readonly part: NumberedPart }) {
  const words = inspectorWords();
  if (part.kind === "image") return <ImagePart page={page} part={part} />;
  const marked = markIn(page, turn, "part", number);
  if (part.text === "" && cut === 0) return null;
  const text = (
    <LongText
      page={page}
      text={part.text}
      length={part.text.length + cut}
      mark={marked}
      terminal={turn.role === "tool"}
      read={async (from, to) =>
        (
          await page.client.call("trajectory/part", {
            source: page.source.peek(),
            turn: turn.turn,
            part: number,
            from,
            to,
          })
        ).text
      }
    />
  );
  if (part.kind === "text") return text;
  return (
    <details class="reasoning" open={marked !== null}>
      <summary>{words.reasoning(countText(part.text.length + cut))}</summary>
      {text}
    </details>
  );
}

function ToolCall({ page, turn, index }: TurnProps & { readonly index: number }) {
  const words = inspectorWords();
  const call = turn.toolCalls[index]!;
  const result = resultOf(page, turn, index);
  const marked = markIn(page, turn, "toolCall", index);
  const [said] = result === null ? [] : textParts(result.parts);
  return (
    <section class="tool-call" aria-label={`${words.call} ${call.name}`}>
      <p class="pairing">
        <span class="muted">{words.call}</span>{" "}
        <b>
          <MarkedName name={call.name} mark={markIn(page, turn, "toolName", index)} />
        </b>
      </p>
      <LongText
        page={page}
        text={call.arguments}
        length={call.arguments.length}
        mark={marked}
        read={(from, to) => Promise.resolve(call.arguments.slice(from, to))}
      />
      {result === null ? (
        <p class="pairing muted">{words.noResult}</p>
      ) : (
        <>
          <p class="pairing">
            <span class="muted">{words.result}</span>{" "}
            <button type="button" class="link" onClick={() => page.chooseTurn(result.turn)}>
              {words.resultAt(countText(result.turn + 1))}
            </button>
            {result.result?.error != null && <span class="fault"> {result.result.error}</span>}
          </p>
          {said !== undefined && <Part page={page} turn={result} part={said} />}
        </>
      )}
    </section>
  );
}

/** The place that is to be seen, if it is in this part or call. */
function markIn(page: InspectorPage, turn: TurnView, place: SearchPlace, part: number): Mark | null {
  const mark = page.mark.value;
  return mark !== null && mark.turn === turn.turn && mark.in === place && mark.part === part ? mark : null;
}

function MarkedName({ name, mark }: { readonly name: string; readonly mark: Mark | null }) {
  const marked = useRef<HTMLElement>(null);
  useEffect(() => marked.current?.scrollIntoView({ block: "center" }), [mark]);
  if (mark === null) return name;
  return (
    <>
      {name.slice(0, mark.at)}
      <mark ref={marked}>{name.slice(mark.at, mark.at + mark.length)}</mark>
      {name.slice(mark.at + mark.length)}
    </>
  );
}

/** By id where there are ids; else the tool turns behind answer in order. */
function resultOf(page: InspectorPage, turn: TurnView, index: number): TurnView | null {
  const { id } = turn.toolCalls[index]!;
  const after: TurnView[] = [];
  for (let at = turn.turn + 1; at <= turn.turn + turn.toolCalls.length; at++) {
    const found = page.turns.value.get(at);
    if (found?.role === "tool") after.push(found);
  }
  return (
    (id === "" ? undefined : after.find(({ result }) => result?.callId === id)) ??
    (id === "" || after[index]?.result?.callId == null ? (after[index] ?? null) : null)
  );
}

function callOf(page: InspectorPage, turn: TurnView) {
  for (let at = turn.turn - 1; at >= Math.max(0, turn.turn - pairReach); at--) {
    const found = page.turns.value.get(at);
    if (found === undefined || found.toolCalls.length === 0) continue;
    const id = turn.result?.callId ?? null;
    const call =
      id === null || id === "" ? found.toolCalls[turn.turn - at - 1] : found.toolCalls.find((one) => one.id === id);
    return call === undefined ? null : { turn: at, call };
  }
  return null;
}
