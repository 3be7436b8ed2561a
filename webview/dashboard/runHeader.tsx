// Name, state and progress of the run, and what can be done with it now.
import { useState } from "preact/hooks";
import { Button } from "../shared/controls.tsx";
import { PageError } from "../shared/rpc.ts";
import { countText, durationText, numberText, sizeText } from "../shared/text.ts";
import { theme } from "../shared/theme.ts";
import type { DashboardPage } from "./page.ts";
import { runLabels } from "./runLabels.ts";
import { type RunModel, timeLeft } from "./runModel.ts";
import { RunPicker } from "./runPicker.tsx";
import { dashboardWords } from "./words.ts";

interface RunHeaderProps {
  readonly page: DashboardPage;
  readonly model: RunModel;
}

export function RunHeader({ page, model }: RunHeaderProps) {
  const words = dashboardWords();
  const { summary } = model;
  const left = timeLeft(model, page.now.value);
  const active = summary.status === "running" || summary.status === "stopping" || summary.status === "paused";
  return (
    <header class="run-header">
      <div class="run-title">
        <h1 title={summary.folder}>{summary.recipe}</h1>
        <span class={`status ${summary.status}`}>
          <span class="status-dot" aria-hidden="true" />
          {words.status[summary.status]}
        </span>
        {active && summary.phase !== null && summary.phase !== summary.status && (
          <span class="muted">{words.phase[summary.phase]}</span>
        )}
        <Actions page={page} model={model} />
      </div>
      <div class="run-progress">
        <progress value={summary.step} max={Math.max(1, summary.steps)} aria-label={words.step} />
        <span class="run-facts">
          <span>{words.stepOf(countText(summary.step), countText(summary.steps))}</span>
          {left !== null && <span>{words.left(durationText(left))}</span>}
          {summary.attempt > 1 && <span>{words.attemptNumber(summary.attempt)}</span>}
          {summary.reward !== null && (
            <span>
              {words.reward} <b>{numberText(summary.reward, 3)}</b>
            </span>
          )}
          {summary.evaluation.latest !== null && (
            <span>
              {words.heldOutFact}{" "}
              <b>
                {summary.evaluation.base !== null && `${numberText(summary.evaluation.base, 3)} → `}
                {numberText(summary.evaluation.latest, 3)}
              </b>
            </span>
          )}
          <span class="muted ellipsis" title={summary.model}>
            {summary.model}
          </span>
        </span>
      </div>
      <Failure model={model} />
      <Overlays page={page} />
    </header>
  );
}

function Actions({ page, model }: RunHeaderProps) {
  const words = dashboardWords();
  const { folder, status } = model.summary;
  const act = (method: "run/pause" | "run/continue" | "run/resume") => () => {
    page.client.call(method, { folder }).catch(page.report);
  };
  const stop = (now: boolean) => () => {
    page.client.call("run/stop", { folder, now }).catch(page.report);
  };
  const [picking, setPicking] = useState(false);
  const compare = async () => {
    try {
      const chosen = page.runs.peek().map((run) => run.folder);
      const { folders } = await page.client.call("host/pickRuns", { chosen });
      if (folders !== null) page.setFolders([folder, ...folders.filter((one) => one !== folder)]);
    } catch (error) {
      if (error instanceof PageError && error.code === "PAGE_HOST_UNSUPPORTED") setPicking(true);
      else page.report(error);
    }
  };
  const disabled = page.client.connection.value.state !== "connected";
  const runs = status === "running" || status === "starting";
  const ended = ["completed", "stopped", "failed", "crashed", "lost"].includes(status);
  return (
    <span class="run-actions">
      {runs && (
        <Button onPress={act("run/pause")} disabled={disabled} hint={words.pauseHint}>
          {words.pause}
        </Button>
      )}
      {status === "paused" && (
        <Button look="primary" onPress={act("run/continue")} disabled={disabled} hint={words.goOnHint}>
          {words.goOn}
        </Button>
      )}
      {(runs || status === "paused") && (
        <Button onPress={stop(false)} disabled={disabled} hint={words.stopHint}>
          {words.stop}
        </Button>
      )}
      {status === "stopping" && (
        <Button onPress={stop(true)} disabled={disabled} hint={words.stopNowHint}>
          {words.stopNow}
        </Button>
      )}
      {ended && model.summary.step < model.summary.steps && (
        <Button look="primary" onPress={act("run/resume")} disabled={disabled} hint={words.resumeHint}>
          {words.resume}
        </Button>
      )}
      <Button disabled={disabled} hint={words.overlayHint} onPress={() => void compare()}>
        {words.overlay}
      </Button>
      {picking && <RunPicker page={page} main={folder} close={() => setPicking(false)} />}
    </span>
  );
}

/** Why it ended without being asked to, and what to do. */
function Failure({ model }: { readonly model: RunModel }) {
  const words = dashboardWords();
  const { crash, error } = model.summary;
  if (crash !== null) {
    const peak = crash.memory.peak;
    return (
      <div class="banner error block" role="alert">
        <p>
          {crash.message} {crash.next}
          {peak !== null && <span class="muted"> ({words.peakMemory(sizeText(peak))})</span>}
        </p>
        {crash.stderrTail !== "" && (
          <details>
            <summary>{words.stderrTail}</summary>
            <pre class="mono">{crash.stderrTail}</pre>
          </details>
        )}
      </div>
    );
  }
  if (error === null) return null;
  return (
    <p class="banner error" role="alert">
      {error.message} {error.next}
    </p>
  );
}

function Overlays({ page }: { readonly page: DashboardPage }) {
  const words = dashboardWords();
  const runs = page.runs.value;
  if (runs.length < 2) return null;
  const labels = runLabels(runs.map((run) => run.folder));
  const colours = theme().value.series;
  return (
    <ul class="chips">
      {runs.map((run, index) => {
        const name = labels.get(run.folder) ?? run.folder;
        return (
          <li key={run.folder} class="chip" title={run.folder}>
            <span class="swatch" style={{ borderColor: colours[index % colours.length] }} />
            {name}
            {index > 0 && (
              <button
                type="button"
                aria-label={words.removeRun(name)}
                title={words.removeRun(name)}
                onClick={() => page.setFolders(runs.filter((one) => one !== run).map((one) => one.folder))}
              >
                ×
              </button>
            )}
          </li>
        );
      })}
    </ul>
  );
}
