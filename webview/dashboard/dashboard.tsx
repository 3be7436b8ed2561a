// The page as a whole: what it shows while it opens, when the connection is away, and which part is in sight.
import { useComputed } from "@preact/signals";
import { Notice, PageFrame, ProblemBanner } from "../shared/pageFrame.tsx";
import { Advisories } from "./advisories.tsx";
import { Charts } from "./charts.tsx";
import { Checkpoints } from "./checkpoints.tsx";
import { Configuration } from "./configuration.tsx";
import { Log } from "./log.tsx";
import type { DashboardPage } from "./page.ts";
import { RunHeader } from "./runHeader.tsx";
import { modelIn } from "./runStore.ts";
import { StepPanel } from "./stepPanel.tsx";
import { type Tab, tabs } from "./view.ts";
import { dashboardWords } from "./words.ts";

interface PageProps {
  readonly page: DashboardPage;
}

export function Dashboard({ page }: PageProps) {
  const content = page.opening.value.state === "opening" ? null : <Run page={page} />;
  return <PageFrame name="dashboard" page={page} words={dashboardWords()} content={content} />;
}

function Run({ page }: PageProps) {
  const words = dashboardWords();
  const run = page.runs.value[0];
  const state = run?.state.value ?? { state: "loading" as const };
  const model = modelIn(state);
  const tab = useComputed(() => page.view.value.tab).value;
  const step = useComputed(() => page.view.value.step).value;
  return (
    <>
      {state.state === "gone" && (
        <p class="banner error" role="alert">
          {words.gone} {state.error.message} {state.error.next}
        </p>
      )}
      {model === null || run === undefined ? (
        state.state === "loading" && <Notice title={words.loading} text={run?.folder ?? ""} />
      ) : (
        <>
          <RunHeader page={page} model={model} />
          <ProblemBanner problem={page.problem} close={words.close} />
          <Advisories page={page} model={model} />
          <Tabs page={page} />
          <main class="content" id="content">
            <Content page={page} tab={tab} />
          </main>
          {step !== null && <StepPanel page={page} folder={run.folder} step={step} />}
        </>
      )}
    </>
  );
}

function Tabs({ page }: PageProps) {
  const words = dashboardWords();
  const tab = useComputed(() => page.view.value.tab).value;
  return (
    <nav class="tabs" aria-label={words.views}>
      {tabs.map((name) => (
        <button
          key={name}
          type="button"
          class={name === tab ? "tab active" : "tab"}
          aria-current={name === tab ? "page" : undefined}
          onClick={() => page.change({ tab: name })}
        >
          {words.tabs[name]}
        </button>
      ))}
    </nav>
  );
}

function Content({ page, tab }: PageProps & { readonly tab: Tab }) {
  const run = page.runs.value[0]!;
  const model = modelIn(run.state.value)!;
  if (tab === "charts") return <Charts page={page} />;
  if (tab === "checkpoints") return <Checkpoints model={model} />;
  if (tab === "configuration") return <Configuration page={page} folder={run.folder} />;
  return <Log page={page} folder={run.folder} />;
}
