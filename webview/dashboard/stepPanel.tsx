// The trajectories behind one step: one hop from a point of a chart to what was sampled.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Explanation } from "../../protocol/runView.ts";
import type { TrajectoryRow } from "../../protocol/trajectoryView.ts";
import { Button } from "../shared/controls.tsx";
import { problemOf } from "../shared/problem.ts";
import { countText, numberText } from "../shared/text.ts";
import { type TableColumn, VirtualTable } from "../shared/virtualTable.tsx";
import type { DashboardPage } from "./page.ts";
import { modelIn } from "./runStore.ts";
import { dashboardWords } from "./words.ts";

interface StepPanelProps {
  readonly page: DashboardPage;
  readonly folder: string;
  readonly step: number;
}

type Rows =
  | { readonly state: "loading" }
  | { readonly state: "ready"; readonly rows: readonly TrajectoryRow[] }
  | { readonly state: "failed"; readonly text: string };

export function StepPanel({ page, folder, step }: StepPanelProps) {
  const words = dashboardWords();
  const rows = useSignal<Rows>({ state: "loading" });
  const explanation = useSignal<Explanation | null>(null);
  const section = useRef<HTMLElement>(null);
  const model = modelIn(page.runs.value[0]!.state.value);
  const last = model?.summary.step ?? step;

  const epoch = page.client.epoch.value;
  useEffect(() => {
    const abort = new AbortController();
    rows.value = { state: "loading" };
    explanation.value = null;
    page.client.call("trajectories/ofStep", { folder, step }, { signal: abort.signal }).then(
      (result) => {
        rows.value = { state: "ready", rows: result.rows };
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        const { message, next } = problemOf(error);
        rows.value = { state: "failed", text: `${message} ${next}` };
      },
    );
    return () => abort.abort();
  }, [folder, step, epoch]);

  // Opened by a key or a click on a chart: go on here. Not when the page was only restored.
  const first = useRef(true);
  useEffect(() => {
    if (first.current) first.current = false;
    section.current?.focus();
  }, []);

  const columns = useMemo(columnsOf, [words]);
  const now = rows.value;
  const close = () => {
    page.change({ step: null });
    document.querySelector<HTMLElement>(".chart-plot")?.focus();
  };
  return (
    <section
      class="step-panel"
      ref={section}
      tabIndex={-1}
      aria-labelledby="step-title"
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      <div class="step-head">
        <h2 id="step-title">{words.stepTitle(countText(step))}</h2>
        <Button
          look="icon"
          label={words.previousStep}
          disabled={step <= 0}
          onPress={() => page.change({ step: step - 1 })}
        >
          ‹
        </Button>
        <Button
          look="icon"
          label={words.nextStep}
          disabled={step >= last}
          onPress={() => page.change({ step: step + 1 })}
        >
          ›
        </Button>
        <span class="muted" title={words.rowHint}>
          {now.state === "ready" && words.trajectories(countText(now.rows.length))}
        </span>
        <span class="step-links">
          <button
            type="button"
            class="link"
            onClick={() =>
              page.client.call("run/explainZeroLoss", { folder, step }).then((result) => {
                explanation.value = result;
              }, page.report)
            }
          >
            {words.explainZero}
          </button>
          <button
            type="button"
            class="link"
            onClick={() => page.client.call("host/openStep", { folder, step }).catch(page.report)}
          >
            {words.showInView}
          </button>
          <Button look="icon" label={words.close} onPress={close}>
            ×
          </Button>
        </span>
      </div>
      {explanation.value !== null && <Explained explanation={explanation.value} />}
      {now.state === "loading" && <p class="notice muted">{words.loadingChart}</p>}
      {now.state === "failed" && (
        <p class="banner error" role="alert">
          {now.text}
        </p>
      )}
      {now.state === "ready" && now.rows.length === 0 && <p class="notice muted">{words.noRecords}</p>}
      {now.state === "ready" && now.rows.length > 0 && (
        <VirtualTable
          className="step-table"
          label={words.openStep(countText(step))}
          rows={now.rows}
          columns={columns}
          keyOf={(row) => row.id}
          opensOnClick
          onOpen={({ source }) => page.client.call("host/openTrajectory", { source, beside: true }).catch(page.report)}
        />
      )}
    </section>
  );
}

function Explained({ explanation }: { readonly explanation: Explanation }) {
  return (
    <div class="explanation" role="status">
      <p>{explanation.answer}</p>
      <ul>
        {explanation.causes.map((cause) => (
          <li key={cause.sentence}>
            {cause.sentence}{" "}
            <span class="muted">
              {Object.entries(cause.evidence)
                .map(([name, value]) => `${name} ${numberText(value)}`)
                .join(", ")}
              {cause.key !== null && ` · ${cause.key}`}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function columnsOf(): readonly TableColumn<TrajectoryRow>[] {
  const words = dashboardWords();
  const { columns } = words;
  const numeric = (
    key: keyof typeof columns,
    width: string,
    read: (row: TrajectoryRow) => number | null,
  ): TableColumn<TrajectoryRow> => ({
    key,
    title: columns[key],
    numeric: true,
    width,
    cell: (row) => numberText(read(row)),
  });
  return [
    {
      key: "task",
      title: columns.task,
      width: "minmax(6em, 2fr)",
      cell: (row) => {
        const name = row.taskName ?? row.task ?? row.id;
        return <span title={name}>{row.sample === null ? name : `${name} #${row.sample}`}</span>;
      },
    },
    numeric("score", "4.5em", (row) => row.score),
    numeric("turns", "3.5em", (row) => row.turns),
    numeric("tokens", "5em", (row) => row.outputTokens),
    numeric("mismatch", "5.5em", (row) => row.mismatch),
    numeric("staleness", "3.5em", (row) => row.staleness),
    {
      key: "notes",
      title: columns.notes,
      width: "minmax(4em, 2fr)",
      cell: (row) =>
        [
          row.status === "ready" ? "" : row.status,
          row.truncated ? words.truncated : "",
          row.toolErrors > 0 ? words.toolErrors(row.toolErrors) : "",
          row.driftedCalls > 0 ? words.drifted(row.driftedCalls) : "",
          ...row.labels,
          row.error?.message ?? "",
        ]
          .filter((note) => note !== "")
          .join(" · "),
    },
  ];
}
