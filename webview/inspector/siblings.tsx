// Other trajectories beside this one, of its group or any that were chosen, each from the place where it parts. Text only: their strips
// are a click away.
import { useEffect, useState } from "preact/hooks";
import type { TrajectoryRow, TrajectorySource } from "../../protocol/trajectoryView.ts";
import { tokenTextSchema } from "../../protocol/trajectoryView.ts";
import { Button, Checkbox } from "../shared/controls.tsx";
import type { ResultOf } from "../shared/rpc.ts";
import { countText, numberText } from "../shared/text.ts";
import type { InspectorPage } from "./page.ts";
import { inspectorWords } from "./words.ts";

interface PageProps {
  readonly page: InspectorPage;
}
type Sibling = ResultOf<"trajectory/siblings">["rows"][number];

/** Besides this one. */
const mostBeside = 3;
const sharedTokens = 12;
const shownTokens = 400;
const shownTurns = 6;
const mostPieces = 20;

export function Siblings({ page }: PageProps) {
  const words = inspectorWords();
  const [rows, setRows] = useState<readonly Sibling[] | null>(null);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const { against } = page.view.value;
  const key = JSON.stringify(against);
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    const source = page.source.peek();
    const asked =
      against.length === 0
        ? page.client.call("trajectory/siblings", { source }, { signal })
        : page.client.call("trajectory/diff", { source, others: [...against] }, { signal });
    setRows(null);
    asked.then(
      (answer) => {
        setRows(answer.rows);
        setChosen(answer.rows.slice(0, mostBeside).map(({ row }) => keyOf(row)));
      },
      (error: unknown) => {
        if (!abort.signal.aborted) page.report(error);
      },
    );
    return () => abort.abort();
  }, [key]);
  if (rows === null) return <p class="notice muted">…</p>;
  if (rows.length === 0) return <p class="notice muted">{words.noSiblings}</p>;
  const shown = rows.filter(({ row }) => chosen.includes(keyOf(row)));
  const own = page.outline.value!.row;
  const places = shown.flatMap(({ parts }) => parts ?? []);
  const ownParts = places.sort((a, b) => a.turn - b.turn || a.token - b.token)[0] ?? null;
  return (
    <div class="siblings">
      <div class="sibling-choice">
        <span class="muted">{against.length === 0 ? words.siblingsHint : words.diffHint}</span>
        {against.length > 0 && <Button onPress={() => page.change({ against: [] })}>{words.backToGroup}</Button>}
        {rows.length > mostBeside &&
          rows.slice(0, 64).map(({ row }) => (
            <Checkbox
              key={keyOf(row)}
              checked={chosen.includes(keyOf(row))}
              disabled={!chosen.includes(keyOf(row)) && chosen.length >= mostBeside}
              onChange={(now) => setChosen(now ? [...chosen, keyOf(row)] : chosen.filter((id) => id !== keyOf(row)))}
            >
              {nameOf(row, own)}
              {row.score !== null && <span class="muted"> {words.scoreIs(numberText(row.score))}</span>}
            </Checkbox>
          ))}
      </div>
      <div class="sibling-columns">
        <Column page={page} row={own} title={words.thisOne(nameOf(own, own))} parts={ownParts} own />
        {shown.map(({ row, parts }) => (
          <Column key={keyOf(row)} page={page} row={row} title={nameOf(row, own)} parts={parts} />
        ))}
      </div>
    </div>
  );
}

/** Ids repeat between files. */
const keyOf = ({ source }: TrajectoryRow) => JSON.stringify(source);

/** Within a task its number says enough. */
function nameOf({ id, sample, task }: TrajectoryRow, own: TrajectoryRow): string {
  return sample === null || task !== own.task ? id : inspectorWords().sampleNumber(countText(sample));
}

interface ColumnProps extends PageProps {
  readonly row: TrajectoryRow;
  readonly title: string;
  readonly parts: Sibling["parts"];
  readonly own?: boolean;
}

/** What a turn says from the place on where they part, with a little before it. */
interface Piece {
  readonly role: string;
  readonly shared: string;
  readonly differs: string;
}
interface Texts {
  readonly pieces: readonly Piece[];
  readonly goesOn: boolean;
}

function Column({ page, row, title, parts, own = false }: ColumnProps) {
  const words = inspectorWords();
  const { source, score, status, outputTokens } = row;
  const facts = [
    score === null ? null : words.scoreIs(numberText(score)),
    status,
    outputTokens === null ? null : words.tokensOf(countText(outputTokens)),
  ].filter((fact) => fact !== null && fact !== "");
  const [texts, setTexts] = useState<Texts | null>(null);
  const [more, setMore] = useState(1);
  useEffect(() => {
    const abort = new AbortController();
    readFrom(page, source, parts, more, abort.signal).then(setTexts, (error: unknown) => {
      if (!abort.signal.aborted) page.report(error);
    });
    return () => abort.abort();
  }, [more, parts?.turn, parts?.token]);
  return (
    <section class="sibling" aria-label={title}>
      <h2>{title}</h2>
      <p class="facts muted">
        {facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
      </p>
      <p class="muted">
        {parts === null ? words.same : words.partsAt(countText(parts.token), countText(parts.turn + 1))}
      </p>
      <div class="sibling-text">
        {texts === null && <p class="muted">…</p>}
        {texts?.pieces.length === 0 && <p class="muted">{words.endsHere}</p>}
        {texts?.pieces.map(({ role, shared, differs }, index) => (
          <div key={index}>
            <p class="muted">{words.roles[role as keyof typeof words.roles] ?? role}</p>
            <pre class="text">
              <span class="muted">{shared}</span>
              <span class={parts === null ? "" : "differs"}>{differs}</span>
            </pre>
          </div>
        ))}
      </div>
      <div class="text-bar">
        {texts?.goesOn === true && more < mostPieces && (
          <Button onPress={() => setMore(more + 1)}>{words.later}</Button>
        )}
        {!own && (
          <Button
            onPress={() => {
              page.client.call("host/openTrajectory", { source, beside: true }).catch(page.report);
            }}
          >
            {words.beside}
          </Button>
        )}
      </div>
    </section>
  );
}

async function readFrom(
  page: InspectorPage,
  source: TrajectorySource,
  parts: Sibling["parts"],
  pages: number,
  signal: AbortSignal,
): Promise<Texts> {
  const turn = parts?.turn ?? 0;
  const [wantedTurns, wantedTokens] = [shownTurns * pages, shownTokens * pages];
  const { turns } = await page.client.call(
    "trajectory/turns",
    { source, from: turn, to: turn + wantedTurns },
    { signal },
  );
  const pieces = turns.map(({ role, parts: said, toolCalls }): Piece => {
    const lines = [
      ...said.flatMap((part) => (part.kind === "text" || part.kind === "reasoning" ? [part.text] : [])),
      ...toolCalls.map(({ name, arguments: text }) => `${name}(${text})`),
    ];
    return { role, shared: "", differs: lines.join("\n").slice(0, wantedTokens * 4) };
  });
  let goesOn = turns.length === wantedTurns;
  const [first] = turns;
  if (parts !== null && first?.tokens != null) {
    // Where the answer of a model parts, to the token.
    const end = first.tokens.first + first.tokens.length;
    const from = Math.max(first.tokens.first, parts.token - sharedTokens);
    const request = { source, from, to: Math.min(end, parts.token + wantedTokens), columns: [], row: null };
    const { extra } = await page.client.callBulk("trajectory/tokens", request, { signal });
    const { text, ends } = tokenTextSchema.parse(extra);
    const split = parts.token === from ? 0 : (ends[parts.token - from - 1] ?? text.length);
    pieces[0] = { role: first.role, shared: text.slice(0, split), differs: text.slice(split) };
    goesOn ||= request.to < end;
  }
  return { pieces, goesOn };
}
