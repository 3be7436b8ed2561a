// Choosing runs to draw together, where the host has no list of its own to choose from: a plain browser.
import { useEffect, useRef, useState } from "preact/hooks";
import type { RunSummary } from "../../protocol/runView.ts";
import { Button, Checkbox } from "../shared/controls.tsx";
import { countText } from "../shared/text.ts";
import type { DashboardPage } from "./page.ts";
import { dashboardWords } from "./words.ts";

interface RunPickerProps {
  readonly page: DashboardPage;
  /** Run that stays the main one. */
  readonly main: string;
  readonly close: () => void;
}

/** Newest first; older ones are opened by `rollscope open`. */
const mostListed = 100;

export function RunPicker({ page, main, close }: RunPickerProps) {
  const words = dashboardWords();
  const element = useRef<HTMLDialogElement>(null);
  const [runs, setRuns] = useState<readonly RunSummary[] | null>(null);
  const [chosen, setChosen] = useState<readonly string[]>(() => page.runs.peek().map((run) => run.folder));
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    const abort = new AbortController();
    page.client.call("runs/watch", {}, { signal: abort.signal }).then(
      (answer) => {
        setRuns(answer.runs.filter((run) => run.folder !== main).slice(0, mostListed));
        // The list is looked at once: nobody here follows its changes.
        page.client.call("runs/unwatch", {}).catch(() => {});
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        close();
        page.report(error);
      },
    );
    return () => {
      abort.abort();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} class="run-picker" aria-label={words.overlayHint} onClose={close}>
      <h2>{words.overlayHint}</h2>
      {runs === null ? (
        <p class="muted">{words.loadingChart}</p>
      ) : runs.length === 0 ? (
        <p class="muted">{words.noOtherRuns}</p>
      ) : (
        <ul>
          {runs.map((run) => (
            <li key={run.folder} title={run.folder}>
              <Checkbox
                checked={chosen.includes(run.folder)}
                onChange={(now) =>
                  setChosen(now ? [...chosen, run.folder] : chosen.filter((folder) => folder !== run.folder))
                }
              >
                {run.folder.split(/[\\/]/).at(-1)}{" "}
                <span class="muted">
                  {words.status[run.status]}, {words.stepOf(countText(run.step), countText(run.steps))}
                </span>
              </Checkbox>
            </li>
          ))}
        </ul>
      )}
      <div class="picker-actions">
        <Button
          look="primary"
          disabled={runs === null || runs.length === 0}
          onPress={() => {
            page.setFolders([main, ...chosen.filter((folder) => folder !== main)]);
            close();
          }}
        >
          {words.showRuns}
        </Button>
        <Button onPress={close}>{words.cancel}</Button>
      </div>
    </dialog>
  );
}
