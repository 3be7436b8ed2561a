// Chooses which of the run's metrics, up to a thousand, get a chart of their own.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button, TextField } from "../shared/controls.tsx";
import { countText } from "../shared/text.ts";
import { VirtualList } from "../shared/virtualList.tsx";
import { metricDescription } from "./chartSeries.ts";
import type { DashboardPage } from "./page.ts";
import { modelIn } from "./runStore.ts";
import { mostPicked } from "./view.ts";
import { dashboardWords } from "./words.ts";

export function MetricPicker({ page }: { readonly page: DashboardPage }) {
  const words = dashboardWords();
  const open = useSignal(false);
  const root = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const away = (event: MouseEvent) => {
      if (event.target instanceof Node && root.current?.contains(event.target) !== true) open.value = false;
    };
    document.addEventListener("mousedown", away);
    return () => document.removeEventListener("mousedown", away);
  }, []);

  const close = () => {
    open.value = false;
    root.current?.querySelector<HTMLElement>("vscode-button")?.focus();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only hears Escape from what is within
    <div
      class="metric-picker"
      ref={root}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open.value) return;
        event.stopPropagation();
        close();
      }}
    >
      <Button
        hint={words.addMetricHint}
        expanded={open.value}
        onPress={() => {
          open.value = !open.value;
        }}
      >
        {words.addMetric}
      </Button>
      {page.view.value.picked.map((name) => (
        <span key={name} class="chip">
          {name}
          <button
            type="button"
            aria-label={words.removeMetric(name)}
            title={words.removeMetric(name)}
            onClick={() => page.change({ picked: page.view.peek().picked.filter((one) => one !== name) })}
          >
            ×
          </button>
        </span>
      ))}
      {open.value && <MetricSearch page={page} />}
    </div>
  );
}

function MetricSearch({ page }: { readonly page: DashboardPage }) {
  const words = dashboardWords();
  const search = useSignal("");
  const active = useSignal(0);
  const root = useRef<HTMLDivElement>(null);
  const all = useComputed(() => [
    ...new Set(page.runs.value.flatMap((run) => modelIn(run.state.value)?.metricNames ?? [])),
  ]);
  const found = useComputed(() => {
    const text = search.value.trim().toLowerCase();
    if (text === "") return all.value;
    return all.value.filter((name) => `${name} ${metricDescription(name)}`.toLowerCase().includes(text));
  }).value;
  const { picked } = page.view.value;

  useEffect(() => root.current?.querySelector<HTMLElement>("vscode-text-field")?.focus(), []);

  const toggle = (index: number) => {
    const name = found[index];
    if (name === undefined) return;
    if (picked.includes(name)) page.change({ picked: picked.filter((one) => one !== name) });
    else if (picked.length < mostPicked) page.change({ picked: [...picked, name] });
  };
  return (
    <div class="popup" ref={root}>
      <TextField
        label={words.metricSearch}
        value={search.value}
        onInput={(text) => {
          search.value = text;
          active.value = 0;
        }}
        onEnter={() => toggle(active.value)}
      />
      <p class="muted small">
        {picked.length >= mostPicked
          ? words.metricLimit(mostPicked)
          : words.metricsOf(countText(found.length), countText(all.value.length))}
      </p>
      {found.length === 0 ? (
        <p class="muted">{words.noMetric}</p>
      ) : (
        <VirtualList
          kind="listbox"
          label={words.metricSearch}
          className="metric-list"
          count={found.length}
          estimate={() => 24}
          fixed
          active={active.value}
          onActive={(index, byPointer) => {
            active.value = index;
            if (byPointer) toggle(index);
          }}
          onOpen={toggle}
          keyOf={(index) => found[index]!}
          render={(index) => {
            const name = found[index]!;
            return (
              <span class="metric-option" title={metricDescription(name)}>
                <span class="metric-check" aria-hidden="true">
                  {picked.includes(name) ? "✓" : ""}
                </span>
                {name}
                {picked.includes(name) && <span class="visually-hidden"> ✓</span>}
              </span>
            );
          }}
        />
      )}
    </div>
  );
}
