// What formats build their answers from: turns with everything unknown, sequences of turns that are read piece by piece, and
// careful reading of values that may have any type.
import type { JsonValue } from "../../../../protocol/agent.ts";
import type {
  ImportedFormat,
  ImportedPart,
  ImportedRole,
  ImportedTrajectory,
  ImportedTurn,
  RewardValue,
} from "../../../../protocol/importedTrajectory.ts";
import type { ScanPlan } from "./jsonScanner.ts";
import type { JsonObject } from "./jsonText.ts";
import { type BrokenElement, type Element, type ElementList, isObject, type Row } from "./row.ts";

/** A trajectory of a record, turns read on request. Ids need not be unique yet. */
export interface RowTrajectory {
  readonly header: Omit<ImportedTrajectory, "turnCount" | "complete" | "source" | "format" | "record">;
  readonly turns: TurnSequence;
}

export interface TurnSequence {
  /** Grows while the record is being scanned. */
  readonly count: number;
  read(from: number, to: number): Promise<ImportedTurn[]>;
}

/** How one kind of record becomes trajectories. */
export interface RowFormat extends ScanPlan {
  readonly format: ImportedFormat;
  /** By its keys and the types of their values. */
  recognises(value: JsonObject): boolean;
  open(row: Row): Promise<RowTrajectory[]> | RowTrajectory[];
}

export function turn(role: ImportedRole, change: Partial<ImportedTurn> = {}): ImportedTurn {
  return {
    role,
    name: null,
    parts: [],
    toolCalls: [],
    result: null,
    demonstration: false,
    trainable: role === "assistant",
    started: null,
    ended: null,
    kinds: [],
    finishReason: null,
    tokens: null,
    source: null,
    problem: null,
    ...change,
  };
}

export function textPart(text: string): ImportedPart {
  return { kind: "text", text };
}

export function header(
  row: Row,
  change: Partial<Omit<RowTrajectory["header"], "id">> & { readonly id: string | null },
): RowTrajectory["header"] {
  return {
    task: null,
    group: null,
    labels: [],
    model: null,
    split: null,
    step: null,
    exitStatus: null,
    score: null,
    error: null,
    truncated: null,
    branch: null,
    reward: {},
    tools: [],
    columns: [],
    started: null,
    ended: null,
    metadata: {},
    ...change,
    id: change.id ?? placeName(row),
  };
}

/** The name of a record that has none: its line, else its number. */
export function placeName(row: Row): string {
  const { line, index } = row.place;
  return line === null ? `#${index + 1}` : `line-${line}`;
}

/** Turns that are known already. */
export function fixedTurns(turns: readonly ImportedTurn[]): TurnSequence {
  return { count: turns.length, read: async (from, to) => turns.slice(Math.max(0, from), to) };
}

/** One turn an element. An element of another shape than a format knows becomes a turn that says so and shows its text. */
export function listTurns(
  list: ElementList | null,
  make: (element: Element, index: number) => ImportedTurn | Promise<ImportedTurn>,
): TurnSequence {
  if (list === null) return fixedTurns([]);
  return {
    get count() {
      return list.count;
    },
    read: async (from, to) => {
      const elements = await list.read(Math.max(0, from), to);
      const turns: ImportedTurn[] = [];
      for (const [offset, element] of elements.entries()) turns.push(await turnOf(element, from + offset, make));
      return turns;
    },
  };
}

async function turnOf(
  element: Element | BrokenElement,
  index: number,
  make: (element: Element, index: number) => ImportedTurn | Promise<ImportedTurn>,
): Promise<ImportedTurn> {
  if ("problem" in element) return brokenTurn(element.text, element.problem, element.source);
  try {
    return { ...(await make(element, index)), source: element.source };
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    return brokenTurn(element.text, error.message, element.source);
  }
}

function brokenTurn(text: string, problem: string, source: ImportedTurn["source"]): ImportedTurn {
  return turn("user", { parts: [textPart(text)], kinds: ["unreadable"], problem, source });
}

/** One after the other. */
export function sequence(...parts: readonly TurnSequence[]): TurnSequence {
  return {
    get count() {
      return parts.reduce((sum, part) => sum + part.count, 0);
    },
    read: async (from, to) => {
      const turns: ImportedTurn[] = [];
      let first = 0;
      for (const part of parts) {
        const start = Math.max(0, from - first);
        const end = Math.min(part.count, to - first);
        if (start < end) turns.push(...(await part.read(start, end)));
        first += part.count;
      }
      return turns;
    },
  };
}

/** A value has another type than its format says. */
export class ShapeError extends Error {}

export function text(value: JsonValue | undefined): string | null {
  return typeof value === "string" ? value : null;
}

/** A name or number as text, exact. */
export function name(value: JsonValue | undefined): string | null {
  if (typeof value === "string") return value === "" ? null : value;
  return typeof value === "number" || typeof value === "bigint" ? String(value) : null;
}

const words = new Set(["NaN", "Infinity", "-Infinity"]);

/** A number, or one of the words for what JSON has no number for. */
export function number(value: JsonValue | undefined): number | null {
  if (typeof value === "number") return value;
  if (typeof value === "boolean" || typeof value === "bigint") return Number(value);
  return typeof value === "string" && words.has(value) ? Number(value) : null;
}

export function count(value: JsonValue | undefined): number | null {
  const found = number(value);
  return found !== null && Number.isSafeInteger(found) && found >= 0 ? found : null;
}

export function flag(value: JsonValue | undefined): boolean | null {
  return typeof value === "boolean" ? value : null;
}

export function object(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

export function array(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

/** Milliseconds since 1970 of seconds, or of an ISO date; a date without a zone is taken as UTC. */
export function time(value: JsonValue | undefined): number | null {
  if (typeof value === "number" && Number.isFinite(value) && value > 0) return value > 1e11 ? value : value * 1000;
  if (typeof value !== "string") return null;
  const parsed = Date.parse(/[zZ]|[+-]\d\d:?\d\d$/.test(value) ? value : `${value}Z`);
  return Number.isNaN(parsed) ? null : parsed;
}

/** A score as a reward: numbers, words and null as they are, an object by its keys, anything else as JSON text. */
export function rewardOf(named: string, value: JsonValue | undefined): Record<string, RewardValue> {
  if (value === undefined || value === null) return { [named]: null };
  const score = number(value);
  if (score !== null) return { [named]: score };
  if (typeof value === "string") return { [named]: value };
  if (isObject(value))
    return Object.assign({}, ...Object.entries(value).map(([key, inner]) => rewardOf(`${named}.${key}`, inner)));
  return { [named]: shortJson(value) };
}

export function shortJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner) => (typeof inner === "bigint" ? `${inner}` : inner)) ?? "null";
}

/** What is left of an object without the keys that went elsewhere. */
export function without(value: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));
}
