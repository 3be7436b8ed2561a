// Other trajectories of the group beside this one, each from the first token where it parts. Text only: their strips are a click away.
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
const mostPieces = 20;

export function Siblings({ page }: PageProps) {
  const words = inspectorWords();
  const [rows, setRows] = useState<readonly Sibling[] | null>(null);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    page.client.call("trajectory/siblings", { source: page.source.peek() }, { signal: abort.signal }).then(
      (answer) => {
        setRows(answer.rows);
        setChosen(answer.rows.slice(0, mostBeside).map(({ row }) => row.id));
      },
      (error: unknown) => {
        if (!abort.signal.aborted) page.report(error);
      },
    );
    return () => abort.abort();
  }, []);
  if (rows === null) return <p class="notice muted">…</p>;
  if (rows.length === 0) return <p class="notice muted">{words.noSiblings}</p>;
  const shown = rows.filter(({ row }) => chosen.includes(row.id));
  const own = page.outline.value!.row;
  const firstPart = Math.min(...shown.map(({ parts }) => parts?.token ?? Number.POSITIVE_INFINITY));
  const ownParts = shown.find(({ parts }) => parts?.token === firstPart)?.parts ?? null;
  return (
    <div class="siblings">
      <div class="sibling-choice">
        <span class="muted">{words.siblingsHint}</span>
        {rows.length > mostBeside &&
          rows.slice(0, 64).map(({ row }) => (
            <Checkbox
              key={row.id}
              checked={chosen.includes(row.id)}
              disabled={!chosen.includes(row.id) && chosen.length >= mostBeside}
              onChange={(now) => setChosen(now ? [...chosen, row.id] : chosen.filter((id) => id !== row.id))}
            >
              {nameOf(row)}
              {row.score !== null && <span class="muted"> {words.scoreIs(numberText(row.score))}</span>}
            </Checkbox>
          ))}
      </div>
      <div class="sibling-columns">
        <Column page={page} row={own} title={words.thisOne(nameOf(own))} parts={ownParts} own />
        {shown.map(({ row, parts }) => (
          <Column key={row.id} page={page} row={row} title={nameOf(row)} parts={parts} />
        ))}
      </div>
    </div>
  );
}

interface ColumnProps extends PageProps {
  readonly row: TrajectoryRow;
  readonly title: string;
  readonly parts: Sibling["parts"];
  readonly own?: boolean;
}

interface Texts {
  readonly shared: string;
  readonly differs: string;
  readonly goesOn: boolean;
}

/** By its number in the group where it has one. */
function nameOf({ id, sample }: TrajectoryRow): string {
  return sample === null ? id : inspectorWords().sampleNumber(countText(sample));
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
    readFrom(page, source, parts, shownTokens * more, abort.signal).then(setTexts, (error: unknown) => {
      if (!abort.signal.aborted) page.report(error);
    });
    return () => abort.abort();
  }, [more, parts?.token]);
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
      <pre class="text sibling-text">
        <span class="muted">{texts?.shared ?? "…"}</span>
        <span class="differs">{texts?.differs ?? ""}</span>
      </pre>
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
  tokens: number,
  signal: AbortSignal,
): Promise<Texts> {
  const token = parts?.token ?? 0;
  if (page.outline.peek()?.tokenCount == null) {
    const turn = parts?.turn ?? 0;
    const answer = await page.client.call("trajectory/turns", { source, from: turn, to: turn + 4 }, { signal });
    const lines = answer.turns.flatMap(({ parts: said, toolCalls }) => [
      ...said.flatMap((part) => (part.kind === "text" || part.kind === "reasoning" ? [part.text] : [])),
      ...toolCalls.map(({ name, arguments: text }) => `${name}(${text})`),
    ]);
    const text = lines.join("\n");
    return { shared: "", differs: text.slice(0, tokens * 4), goesOn: text.length > tokens * 4 };
  }
  const from = Math.max(0, token - sharedTokens);
  const request = { source, from, to: token + tokens, columns: [], row: null };
  const { extra } = await page.client.callBulk("trajectory/tokens", request, { signal });
  const { text, ends } = tokenTextSchema.parse(extra);
  const split = token === from ? 0 : (ends[token - from - 1] ?? text.length);
  return { shared: text.slice(0, split), differs: text.slice(split), goesOn: ends.length === request.to - from };
}
