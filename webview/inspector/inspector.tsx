// The page as a whole: what it shows while it opens, its parts in their places, and the keys that work everywhere.
import { useEffect } from "preact/hooks";
import { Button, TextField } from "../shared/controls.tsx";
import { PageFrame, ProblemBanner } from "../shared/pageFrame.tsx";
import { countText, numberText, percentText } from "../shared/text.ts";
import { Details } from "./details.tsx";
import { Dialogs } from "./dialogs.tsx";
import { listenForKeys, searchId } from "./keys.ts";
import type { InspectorPage } from "./page.ts";
import { SearchHits } from "./searchHits.tsx";
import { Siblings } from "./siblings.tsx";
import { TokenStrip } from "./tokenStrip.tsx";
import { TurnList } from "./turnList.tsx";
import { TurnPane } from "./turnPane.tsx";
import { modes } from "./view.ts";
import { inspectorWords } from "./words.ts";

export interface PageProps {
  readonly page: InspectorPage;
}

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
      <InFile page={page} />
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

/** Which trajectory of the file this is, and the way to the others. */
function InFile({ page }: PageProps) {
  const words = inspectorWords();
  const source = page.source.value;
  const count = page.outline.value?.inFile ?? 0;
  if (source.kind !== "file" || count < 2) return null;
  return (
    <div class="in-file">
      <Button
        look="icon"
        label={`${words.previousTrajectory} ([)`}
        disabled={source.index === 0}
        onPress={() => page.stepTrajectory(-1)}
      >
        ‹
      </Button>
      <span class="muted">{words.inFile(countText(source.index + 1), countText(count))}</span>
      <Button
        look="icon"
        label={`${words.nextTrajectory} (])`}
        disabled={source.index + 1 >= count}
        onPress={() => page.stepTrajectory(1)}
      >
        ›
      </Button>
    </div>
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
