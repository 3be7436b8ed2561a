// The configuration in force, with what set each value, and the environment of each attempt.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { TextField } from "../shared/controls.tsx";
import { problemOf } from "../shared/problem.ts";
import type { ResultOf } from "../shared/rpc.ts";
import { VirtualTable } from "../shared/virtualTable.tsx";
import type { DashboardPage } from "./page.ts";
import { dashboardWords } from "./words.ts";

interface ConfigurationProps {
  readonly page: DashboardPage;
  readonly folder: string;
}

type Answer = ResultOf<"run/config">;

export function Configuration({ page, folder }: ConfigurationProps) {
  const words = dashboardWords();
  const answer = useSignal<Answer | null>(null);
  const failure = useSignal<string | null>(null);
  const search = useSignal("");
  const epoch = page.client.epoch.value;
  useEffect(() => {
    const abort = new AbortController();
    page.client.call("run/config", { folder }, { signal: abort.signal }).then(
      (result) => {
        answer.value = result;
        failure.value = null;
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        const { message, next } = problemOf(error);
        failure.value = `${message} ${next}`;
      },
    );
    return () => abort.abort();
  }, [folder, epoch]);

  if (answer.value === null) {
    return failure.value === null ? (
      <p class="notice muted">{words.loadingChart}</p>
    ) : (
      <p class="banner error" role="alert">
        {failure.value}
      </p>
    );
  }
  const { values, environments } = answer.value;
  const text = search.value.trim().toLowerCase();
  const rows = values.filter((row) => `${row.key} ${row.origin}`.toLowerCase().includes(text));
  return (
    <>
      <div class="toolbar">
        <TextField
          label={words.filterKeys}
          value={search.value}
          onInput={(next) => {
            search.value = next;
          }}
        />
      </div>
      {rows.length === 0 ? (
        <p class="muted">{words.noConfiguration}</p>
      ) : (
        <VirtualTable
          className="config-table mono"
          label={words.tabs.configuration}
          rows={rows}
          keyOf={(row) => row.key}
          columns={[
            { key: "key", title: words.key, width: "minmax(14em, 2fr)", cell: (row) => row.key },
            {
              key: "value",
              title: words.value,
              width: "minmax(10em, 2fr)",
              cell: (row) => <span title={valueText(row.value)}>{valueText(row.value)}</span>,
            },
            {
              key: "origin",
              title: words.origin,
              width: "minmax(12em, 2fr)",
              cell: (row) => (
                <span class={row.origin === "default" ? "muted" : ""} title={row.origin}>
                  {row.origin}
                </span>
              ),
            },
          ]}
        />
      )}
      {environments.map(({ attempt, environment }) => (
        <details key={attempt} class="environment">
          <summary>{words.environment(attempt)}</summary>
          <pre class="mono">{JSON.stringify(environment, null, 2)}</pre>
        </details>
      ))}
    </>
  );
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
