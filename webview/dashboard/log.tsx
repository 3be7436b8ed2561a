// The end of the run's log, as it would look in a terminal that nothing can wipe.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ansiReader, plainText } from "../shared/ansi.ts";
import { Button } from "../shared/controls.tsx";
import { problemOf } from "../shared/problem.ts";
import { TerminalLine } from "../shared/terminalText.tsx";
import { sizeText } from "../shared/text.ts";
import { VirtualList } from "../shared/virtualList.tsx";
import type { DashboardPage } from "./page.ts";
import { modelIn } from "./runStore.ts";
import { dashboardWords } from "./words.ts";

const mostBytes = 500_000;
const refreshMilliseconds = 2000;

interface LogProps {
  readonly page: DashboardPage;
  readonly folder: string;
}

export function Log({ page, folder }: LogProps) {
  const words = dashboardWords();
  const log = useSignal<{ readonly text: string; readonly truncated: boolean } | null>(null);
  const failure = useSignal<string | null>(null);
  const connected = page.client.connection.value.state === "connected";
  const status = modelIn(page.runs.value[0]!.state.value)?.summary.status;
  const active = status === "running" || status === "starting" || status === "stopping" || status === "paused";

  useEffect(() => {
    if (!connected) return;
    const abort = new AbortController();
    let timer: number | undefined;
    const read = () => {
      page.client.call("run/log", { folder, bytes: mostBytes }, { signal: abort.signal }).then(
        (result) => {
          if (log.peek()?.text !== result.text) log.value = result;
          failure.value = null;
          if (active) timer = window.setTimeout(read, refreshMilliseconds);
        },
        (error: unknown) => {
          if (abort.signal.aborted) return;
          const { message, next } = problemOf(error);
          failure.value = `${message} ${next}`;
        },
      );
    };
    read();
    return () => {
      abort.abort();
      window.clearTimeout(timer);
    };
  }, [folder, connected, active]);

  const text = log.value?.text ?? "";
  const lines = useMemo(() => {
    const reader = ansiReader();
    reader.write(text);
    const read = reader.lines;
    return read.at(-1)?.length === 0 ? read.slice(0, -1) : read;
  }, [text]);

  if (failure.value !== null) {
    return (
      <p class="banner error" role="alert">
        {failure.value}
      </p>
    );
  }
  if (log.value === null) return <p class="notice muted">{words.loadingChart}</p>;
  if (lines.length === 0) return <p class="notice muted">{words.logEmpty}</p>;
  return (
    <>
      <div class="toolbar">
        <Button
          onPress={() =>
            page.client
              .call("host/copy", { text: lines.map(plainText).join("\n") })
              .then(() => page.say(words.copied), page.report)
          }
        >
          {words.copyLog}
        </Button>
        {log.value.truncated && <span class="muted">{words.logCut(sizeText(mostBytes))}</span>}
      </div>
      <VirtualList
        className="log mono"
        kind="log"
        label={words.logOf}
        count={lines.length}
        estimate={() => 18}
        followEnd
        overscan={20}
        render={(index) => {
          const line = lines[index]!;
          return line.length === 0 ? " " : <TerminalLine line={line} />;
        }}
      />
    </>
  );
}
