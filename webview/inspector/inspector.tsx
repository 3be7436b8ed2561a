// The page as a whole: what it shows while it opens, its parts in their places, and the keys that work everywhere.
import { useEffect } from "preact/hooks";
import { Button, TextField } from "../shared/controls.tsx";
import { PageFrame, ProblemBanner } from "../shared/pageFrame.tsx";
import { countText, numberText, percentText } from "../shared/text.ts";
import { Details } from "./details.tsx";
import { Dialogs } from "./dialogs.tsx";
import type { InspectorPage } from "./page.ts";
import { SearchHits } from "./searchHits.tsx";
import { Siblings } from "./siblings.tsx";
import { TokenStrip } from "./tokenStrip.tsx";
import { TurnList } from "./turnList.tsx";
import { TurnPane } from "./turnPane.tsx";
import { modes } from "./view.ts";
import { inspectorWords } from "./words.ts";
import { jumpToWorst } from "./worst.ts";

export interface PageProps {
  readonly page: InspectorPage;
}

const searchId = "inspector-search";

export function Inspector({ page }: PageProps) {
  useEffect(() => listenForKeys(page), []);
  const content = page.outline.value === null ? null : <Trajectory page={page} />;
  return (
    <PageFrame name="inspector" page={page} words={inspectorWords()} content={content}>
      <Dialogs page={page} />
    </PageFrame>
  );
}

function Trajectory({ page }: PageProps) {
  const words = inspectorWords();
  const { mode } = page.view.value;
  const searching = page.search.state.value.text !== "";
  return (
    <>
      <Header page={page} />
      <ProblemBanner problem={page.problem} close={words.close} />
      <Branches page={page} />
      <div class="body">
        <nav class="side" aria-label={searching ? words.hits : words.turns}>
          {searching ? <SearchHits page={page} /> : <TurnList page={page} />}
        </nav>
        <main class="content">
          <div class="tabs">
            {modes.map((name) => (
              <button
                key={name}
                type="button"
                class={name === mode ? "tab active" : "tab"}
                aria-current={name === mode ? "page" : undefined}
                onClick={() => page.change({ mode: name })}
              >
                {words.modes[name]}
              </button>
            ))}
          </div>
          {mode === "details" ? (
            <Details page={page} />
          ) : mode === "siblings" ? (
            <Siblings page={page} key={JSON.stringify(page.source.value)} />
          ) : (
            <>
              <TurnPane page={page} raw={mode === "raw"} />
              <TokenStrip page={page} />
            </>
          )}
        </main>
      </div>
    </>
  );
}

function Header({ page }: PageProps) {
  const words = inspectorWords();
  const { row, turnCount, tokenCount, complete, progress, reward } = page.outline.value!;
  const rewards = Object.entries(reward).filter(([name, value]) => name !== "score" && typeof value === "number");
  return (
    <header class="header">
      <div class="title">
        <h1 title={row.id}>{row.taskName ?? row.id}</h1>
        <span class="facts muted">
          <span>{row.status}</span>
          {row.score !== null && (
            <span>
              {words.score} <b>{numberText(row.score)}</b>
            </span>
          )}
          {rewards.slice(0, 3).map(([name, value]) => (
            <span key={name}>
              {name} {numberText(value as number)}
            </span>
          ))}
          <span>
            {words.turnsOf(countText(turnCount))}
            {!complete && ` (${words.growing})`}
          </span>
          {tokenCount !== null && <span>{words.tokensOf(countText(tokenCount))}</span>}
        </span>
      </div>
      <div class="tools">
        <TextField
          id={searchId}
          label={words.search}
          placeholder={`${words.search} ( / )`}
          value={page.view.value.search}
          onInput={(search) => page.change({ search })}
          onEnter={(shift) => {
            const { search } = page.view.peek();
            if (search !== page.search.state.peek().text) {
              void page.search.run(search).then(() => {
                const { hits } = page.search.state.peek();
                if (hits.length > 0) page.search.choose(0);
                else page.say(words.noHits);
              });
            } else void page.search.step(shift ? -1 : 1);
          }}
          onEscape={() => {
            page.change({ search: "" });
            page.search.forget();
            page.mark.value = null;
          }}
        />
        <Button
          look="icon"
          label={`${words.go} (g)`}
          onPress={() => {
            page.dialog.value = "go";
          }}
        >
          #
        </Button>
        <Button
          look="icon"
          label={`${words.help} (?)`}
          onPress={() => {
            page.dialog.value = "help";
          }}
        >
          ?
        </Button>
      </div>
      {progress !== null && (
        <div class="progress">
          <progress
            aria-label={words.indexing("")}
            max={progress.total}
            value={progress.done}
            title={words.indexing(percentText(progress.done / progress.total, 0))}
          />
          <span class="muted">{words.indexing(percentText(progress.done / progress.total, 0))}</span>
        </div>
      )}
    </header>
  );
}

function Branches({ page }: PageProps) {
  const words = inspectorWords();
  const branches = page.outline.value?.branches ?? [];
  if (branches.length < 2) return null;
  return (
    <nav class="tabs branches" aria-label={words.branches}>
      {branches.slice(0, 40).map(({ leaf, drift, turns }, index) => {
        const chosen = index === page.view.value.branch;
        return (
          <button
            key={leaf}
            type="button"
            class={chosen ? "tab active" : "tab"}
            aria-current={chosen ? "true" : undefined}
            title={drift === null ? leaf : `${leaf}: ${drift.kind}`}
            onClick={() => {
              const last = turns.at(-1);
              page.change({ branch: index, turn: last === undefined ? 0 : Math.max(0, last[1] - 1), cell: 0 });
            }}
          >
            {words.branch(index + 1)}
            {drift !== null && <span class="muted"> {drift.kind}</span>}
          </button>
        );
      })}
    </nav>
  );
}

/** @returns ends it */
function listenForKeys(page: InspectorPage): () => void {
  const stepTurn = (by: number) => {
    const order = page.order.peek();
    const place = Math.max(0, Math.min(order.count - 1, order.placeOf(page.view.peek().turn) + by));
    if (order.count > 0) page.chooseTurn(order.turnAt(place));
  };
  const stepCell = (by: number) => {
    const { turn, cell } = page.view.peek();
    const found = page.turns.peek().get(turn);
    if (found === undefined) return;
    const images = found.parts.filter((part) => part.kind === "image").length;
    const count = images + (found.tokens?.length ?? 0);
    page.hover.value = null;
    page.change({ cell: Math.max(0, Math.min(count - 1, cell + by)) });
  };
  const actions: Readonly<Record<string, () => void>> = {
    j: () => stepTurn(1),
    k: () => stepTurn(-1),
    l: () => stepCell(1),
    h: () => stepCell(-1),
    "/": () => document.getElementById(searchId)?.focus(),
    n: () => void page.search.step(1),
    N: () => void page.search.step(-1),
    g: () => {
      page.dialog.value = "go";
    },
    w: () => void jumpToWorst(page),
    "?": () => {
      page.dialog.value = "help";
    },
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || page.outline.peek() === null) return;
    const [target] = event.composedPath();
    if (target instanceof Element && target.closest("input, textarea, select, [contenteditable], dialog") !== null)
      return;
    // A dropdown chooses by first letters.
    if (event.composedPath().some((part) => part instanceof Element && part.localName === "vscode-dropdown")) return;
    const mode = modes[Number(event.key) - 1];
    const action = mode === undefined ? actions[event.key] : () => page.change({ mode });
    if (action === undefined) return;
    event.preventDefault();
    action();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}
