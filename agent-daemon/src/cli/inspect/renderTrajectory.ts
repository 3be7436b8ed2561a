// A trajectory in the terminal: who asked what, and each sampled token with its numbers, coloured by them. Pure. Text from
// outside is shown sign by sign; nothing of it reaches the terminal as a command.
import { stringify } from "lossless-json";
import type { ChatMessage } from "../../../../protocol/agent.ts";
import type { LoadedCall, LoadedTrajectory } from "../../store/loadTrajectory.ts";
import type { Color, Paint } from "../terminal/colors.ts";
import { formatNumber } from "../terminal/numbers.ts";
import { harmless, padEnd, padStart, paintSigns, truncate, visible, visibleToken, widthOf } from "../terminal/text.ts";
import type { TokenRow, TokenTotals } from "./tokenTable.ts";

export interface ShownCall {
  readonly call: LoadedCall;
  /** The rows to show, in order. */
  readonly rows: readonly TokenRow[];
  /** Steps whose training the rows show; null when they show none. */
  readonly step: number | null;
}

type Column = {
  readonly title: string;
  readonly of: (row: TokenRow) => string;
  readonly color?: (row: TokenRow) => Color | null;
};

const number = (value: number) => (Number.isNaN(value) ? "" : formatNumber(value));
const signed = (value: number) => (value > 0 ? `+${formatNumber(value)}` : number(value));

const numberColumns: readonly Column[] = [
  { title: "rollout", of: (row) => number(row.rollout), color: (row) => surpriseColor(row.rollout) },
  { title: "sampled", of: (row) => number(row.sampled) },
  { title: "old", of: (row) => number(row.old) },
  { title: "new", of: (row) => number(row.new) },
  { title: "ref", of: (row) => number(row.reference) },
  { title: "ratio", of: (row) => number(row.ratio) },
  { title: "entropy", of: (row) => number(row.entropy) },
  { title: "advantage", of: (row) => signed(row.advantage), color: (row) => signColor(row.advantage) },
  { title: "weight", of: (row) => number(row.weight) },
];

/** Unlikely tokens stand out. */
function surpriseColor(logprob: number): Color | null {
  if (logprob < Math.log(0.01)) return "red";
  return logprob < Math.log(0.2) ? "yellow" : null;
}

function signColor(value: number): Color | null {
  return value > 0 ? "green" : value < 0 ? "red" : null;
}

const widestToken = 24;
/** Stands for a token that adds no text until a later one completes its character. */
const partOfCharacter = "(part)";

export function renderTrajectory(
  trajectory: LoadedTrajectory,
  calls: readonly ShownCall[],
  totals: TokenTotals,
  width: number | null,
  paint: Paint,
): string[] {
  return [
    ...headLines(trajectory, paint),
    ...calls.flatMap((shown, index) => ["", ...callLines(shown, index, width, paint)]),
    ...toolLines(trajectory, paint),
    "",
    totalsLine(totals, paint),
  ];
}

function totalsLine({ tokens, trained, logprobSum, entropyMean }: TokenTotals, paint: Paint): string {
  const facts = [
    `${tokens} tokens sampled`,
    `${trained} trained`,
    ...(tokens === 0 ? [] : [`Σ log-probability ${number(logprobSum)}`]),
    ...(Number.isNaN(entropyMean) ? [] : [`mean entropy ${number(entropyMean)}`]),
  ];
  return `${paint("bold", "total")}  ${facts.join(" · ")}`;
}

function headLines({ record, task }: LoadedTrajectory, paint: Paint): string[] {
  const score =
    record.score === null
      ? "no score"
      : record.score === "ungraded"
        ? "ungraded"
        : `score ${formatNumber(record.score)}`;
  const parts = Object.entries(record.reward).map(([name, value]) => `${visible(name)} ${formatNumber(value)}`);
  const trained =
    record.trainedCount === 0
      ? "not trained"
      : `trained ${record.trainedCount === 1 ? "once" : `${record.trainedCount} times`}, last in step ${record.lastTrainedStep}`;
  const lines = [
    `${paint("bold", `record ${record.id}`)}  ${record.status}, ${[score, ...parts].join(", ")}, ${trained}`,
    `task ${visible(task?.name ?? record.task)} (${record.split}), sample ${record.sample}${record.resample > 0 ? `, try ${record.resample + 1}` : ""}${record.labels.length > 0 ? `, ${record.labels.map(visible).join(", ")}` : ""}`,
  ];
  const fields = Object.entries(record.fields).map(([name, value]) => `${visible(name)} ${shownValue(value)}`);
  if (fields.length > 0) lines.push(`fields ${fields.join(", ")}`);
  if (record.error !== null) lines.push(paint("red", harmless(`${record.error.code}: ${record.error.message}`)));
  return lines;
}

function callLines({ call, rows, step }: ShownCall, index: number, width: number | null, paint: Paint): string[] {
  const { document } = call;
  const facts = [
    `call ${index + 1} ${document.id}`,
    document.finishReason ?? document.status,
    `${document.usage.promptTokens} prompt tokens (${document.usage.cachedTokens} cached)`,
    // Files of other tools do not say at which temperature they sampled.
    `${call.output.length} sampled${document.dialect === "imported" ? "" : ` at T ${formatNumber(document.temperature)}`}`,
    ...(document.versions.length > 0 ? [`policy ${document.versions.map((run) => run.version).join(", ")}`] : []),
    ...(step === null ? [] : [`training of step ${step}`]),
    ...(document.drift.kind === "none" ? [] : [`drift: ${document.drift.kind}`]),
  ];
  const lines = [paint("bold", facts.join(" · "))];
  for (const message of document.request.messages) lines.push(...messageLines(message, paint));
  if (document.error !== null) lines.push(paint("red", harmless(`${document.error.code}: ${document.error.message}`)));
  if (rows.length === 0) return [...lines, paint("dim", "  no tokens")];
  return [...lines, textLine(rows, paint), ...tokenLines(rows, width, paint)];
}

function messageLines(message: ChatMessage, paint: Paint): string[] {
  const { content } = message;
  const text =
    content === null ? "" : typeof content === "string" ? content : content.map((part) => part.text).join("");
  const lines = harmless(text).split("\n");
  const indent = " ".repeat(message.role.length + 4);
  return lines.map((line, index) =>
    index === 0 ? `  ${paint("cyan", `${message.role}:`)} ${line}` : `${indent}${line}`,
  );
}

/** The answer as one text, each token in the colour of its advantage. */
function textLine(rows: readonly TokenRow[], paint: Paint): string {
  const text = rows
    .map((row) => {
      const color = signColor(row.advantage) ?? surpriseColor(row.rollout);
      return color === null ? visible(row.text) : paint(color, visible(row.text));
    })
    .join("");
  return `  ${paint("cyan", "assistant:")} ${text}`;
}

function tokenLines(rows: readonly TokenRow[], width: number | null, paint: Paint): string[] {
  const shown = numberColumns.filter((column) => rows.some((row) => column.of(row) !== ""));
  const tokens = rows.map((row) => (row.text === "" ? partOfCharacter : truncate(visibleToken(row.text), widestToken)));
  const indexWidth = Math.max(2, String(rows.at(-1)?.index ?? 0).length);
  const idWidth = Math.max(2, ...rows.map((row) => String(row.id).length));
  const tokenWidth = Math.max(5, ...tokens.map(widthOf));
  let left = (width ?? Number.POSITIVE_INFINITY) - (2 + indexWidth + 2 + tokenWidth + 2 + idWidth);
  const columns = shown
    .map((column) => ({
      ...column,
      width: Math.max(widthOf(column.title), ...rows.map((row) => widthOf(column.of(row)))),
    }))
    .filter((column) => {
      left -= column.width + 2;
      return left >= 0;
    });
  const missing = shown.length - columns.length;
  const head = [
    padStart("#", indexWidth),
    padEnd("token", tokenWidth),
    padStart("id", idWidth),
    ...columns.map((column) => padStart(column.title, column.width)),
  ].join("  ");
  const dim = (text: string) => paint("dim", text);
  const lines = [dim(`  ${head}`)];
  for (const [place, row] of rows.entries()) {
    const cells = columns.map((column) => {
      const cell = padStart(column.of(row), column.width);
      const color = column.color?.(row) ?? null;
      return color === null ? cell : paint(color, cell);
    });
    const token = padEnd(tokens[place] ?? "", tokenWidth);
    const id = dim(padStart(String(row.id), idWidth));
    lines.push(
      ["", padStart(String(row.index), indexWidth), row.trained ? paintSigns(token, dim) : dim(token), id, ...cells]
        .join("  ")
        .replace(/^ {2}/, "  "),
    );
  }
  if (missing > 0) lines.push(dim(`  (${missing} more columns: widen the terminal, or use --json)`));
  return lines;
}

function toolLines({ toolEvents }: LoadedTrajectory, paint: Paint): string[] {
  if (toolEvents.length === 0) return [];
  const lines = toolEvents.map((event) => {
    const end = event.error === null ? shownValue(event.result) : paint("red", visible(event.error.message));
    return `  ${visible(event.name)}(${shownValue(event.arguments)}) → ${end}  ${paint("dim", `${event.durationMs.toFixed(0)} ms`)}`;
  });
  return ["", paint("bold", "tools"), ...lines];
}

const longestValue = 60;

/** A value of the recipe's, whole only where it is short: --json has the rest. */
function shownValue(value: unknown): string {
  return truncate(visible((stringify(value) ?? "").slice(0, 4 * longestValue)), longestValue);
}
