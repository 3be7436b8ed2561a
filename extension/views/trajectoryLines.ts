// Lines of the Trajectories view, and the words for its order and filter. Pure.
import type { z } from "zod";
import type { trajectoryFilterSchema, trajectoryOrders } from "../../protocol/daemonMethods.ts";
import type { TrajectoryRow } from "../../protocol/trajectoryView.ts";
import { shortNumber } from "../runs/describeRun.ts";
import type { TreeLine } from "./treeLine.ts";

export type TrajectoryFilter = z.infer<typeof trajectoryFilterSchema>;
export type TrajectoryOrder = (typeof trajectoryOrders)[number];

export const orderNames: Readonly<Record<TrajectoryOrder, string>> = {
  created: "Time",
  score: "Score",
  mismatch: "Mismatch of sampler and trainer",
  outputTokens: "Length in sampled tokens",
  turns: "Turns",
  driftedCalls: "Drift",
  staleness: "Staleness",
};

export interface TrajectoryList {
  readonly rows: readonly TrajectoryRow[];
  readonly total: number;
  readonly more: boolean;
}

export function trajectoryLines(folder: string, list: TrajectoryList, order: TrajectoryOrder): TreeLine[] {
  const lines: TreeLine[] = list.rows.map((row) => trajectoryLine(row, order));
  if (list.more) {
    lines.push({
      id: `${folder}#more`,
      label: "Show more",
      description: `${list.rows.length} of ${list.total}`,
      icon: "ellipsis",
      command: { id: "rollscope.moreTrajectories", arguments: [] },
    });
  }
  return lines;
}

/** Whether its rollout is over: what the line says then stays. */
export function isSettled(row: TrajectoryRow): boolean {
  return row.score !== null || row.error !== null;
}

/** The rows in their order, each as it was read now where that is known; the same array when nothing of them changed. */
export function withNews(known: readonly TrajectoryRow[], read: readonly TrajectoryRow[]): readonly TrajectoryRow[] {
  const now = new Map(read.map((row) => [row.id, row]));
  const news = known.map((row) => (isSettled(row) ? row : (now.get(row.id) ?? row)));
  return news.some((row, index) => row !== known[index]) ? news : known;
}

/** The mismatch is told where it decides the order; mostly it is tiny. */
export function trajectoryLine(row: TrajectoryRow, order: TrajectoryOrder = "created"): TreeLine {
  const flags = [
    ...(row.truncated ? ["truncated"] : []),
    ...(row.driftedCalls > 0 ? [`drift ${row.driftedCalls}`] : []),
    ...(row.toolErrors > 0 ? [`${row.toolErrors} tool errors`] : []),
    ...(row.staleness !== null && row.staleness > 0 ? [`stale ${row.staleness}`] : []),
  ];
  const numbers = [
    ...(row.score === null ? [row.status] : [shortNumber(row.score)]),
    ...(row.turns === null || row.turns === 0 ? [] : [`${row.turns} ${row.turns === 1 ? "turn" : "turns"}`]),
    ...(row.outputTokens === null || row.outputTokens === 0 ? [] : [`${row.outputTokens} tokens`]),
    ...(row.mismatch === null || order !== "mismatch" ? [] : [`mismatch ${shortNumber(row.mismatch)}`]),
  ];
  const { icon, color } = looks(row);
  // The samples of a group have the same task.
  const name = row.taskName ?? row.task ?? row.id;
  return {
    id:
      row.source.kind === "record"
        ? `${row.source.folder}#${row.source.record}`
        : `${row.source.path}#${row.source.index}`,
    label: row.sample === null ? name : `${name} #${row.sample}`,
    description: [...numbers, ...flags].join(" · "),
    icon,
    color,
    tooltip: [
      `Record ${row.id}${row.sample === null ? "" : `, sample ${row.sample}`}${row.attempt === null ? "" : `, attempt ${row.attempt}`}`,
      `Status: ${row.status}${row.score === null ? "" : `, score ${row.score}`}`,
      ...(row.mismatch === null ? [] : [`Mismatch: ${row.mismatch}`]),
      ...(row.steps.length === 0 ? [] : [`Trained by step ${row.steps.join(", ")}`]),
      ...(row.error === null ? [] : [row.error.message]),
    ],
    context: "trajectory",
    command: { id: "rollscope.openTrajectory", arguments: [{ source: row.source }] },
    source: row.source,
  };
}

function looks(row: TrajectoryRow): { icon: string; color: string } {
  if (row.error !== null) return { icon: "error", color: "charts.red" };
  if (row.score === null) return { icon: "circle-outline", color: "charts.foreground" };
  return row.score > 0 ? { icon: "pass", color: "charts.green" } : { icon: "circle-slash", color: "charts.orange" };
}

/** What is shown, for the view's description: "math-grpo · step 3 · by score". */
export function describeList(run: string, filter: TrajectoryFilter, order: TrajectoryOrder): string {
  const parts = [run];
  if (filter.step !== undefined) parts.push(`step ${filter.step}`);
  parts.push(...describeFilter(filter));
  if (order !== "created") parts.push(`by ${orderNames[order].toLowerCase()}`);
  return parts.join(" · ");
}

export function describeFilter(filter: TrajectoryFilter): string[] {
  const { score } = filter;
  return [
    ...(filter.split === undefined ? [] : [filter.split === "heldOut" ? "held out" : "training"]),
    ...(filter.status === undefined ? [] : [filter.status.join(", ")]),
    ...(score === undefined ? [] : [`score ${score.min ?? "−∞"} to ${score.max ?? "∞"}`]),
    ...(filter.drifted === true ? ["drifted"] : []),
    ...(filter.truncated === true ? ["truncated"] : []),
    ...(filter.toolErrors === true ? ["with tool errors"] : []),
    ...(filter.text === undefined ? [] : [`“${filter.text}”`]),
  ];
}

/** A typed range, as in `0.5 -`; null when it is none. */
export function parseScore(text: string): { min?: number; max?: number } | null {
  const trimmed = text.trim();
  if (trimmed === "") return {};
  const parts = trimmed.split(/\s+/);
  if (parts.length !== 2) return null;
  const [min, max] = parts.map((part) => (part === "-" ? undefined : Number(part)));
  if (Number.isNaN(min) || Number.isNaN(max)) return null;
  return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
}
