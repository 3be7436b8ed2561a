// Claude Code session logs: one event a line, a tree by parentUuid. Every line of the tree that ends somewhere is a trajectory; side
// chains (sub-agents) stand apart; a compaction goes on with the session it compacts.
import type { JsonValue } from "../../../../../protocol/agent.ts";
import type { ImportedTurn } from "../../../../../protocol/importedTrajectory.ts";
import { argumentsText, partsOf } from "../chatMessages.ts";
import type { JsonObject } from "../jsonText.ts";
import { type BrokenElement, type Element, isObject, type Row } from "../row.ts";
import { array, header, name, object, type RowTrajectory, text, textPart, time, turn } from "../turns.ts";

export function isClaudeCodeEvent(value: JsonObject): boolean {
  return (
    typeof value["uuid"] === "string" &&
    typeof value["type"] === "string" &&
    ("parentUuid" in value || "sessionId" in value)
  );
}

/** Lines without a place in the tree, which may come before the first event. */
export function isClaudeCodeNote(value: JsonObject): boolean {
  return (
    (value["type"] === "summary" && "leafUuid" in value) ||
    value["type"] === "file-history-snapshot" ||
    value["type"] === "queue-operation"
  );
}

interface Node {
  /** Number of the line among all lines, from 0. */
  readonly line: number;
  readonly uuid: string;
  readonly parent: string | null;
  readonly sidechain: boolean;
  readonly assistant: boolean;
  /** API answer that the line is a part of. */
  readonly message: string | null;
  readonly turns: number;
  readonly toolUses: readonly string[];
  readonly results: readonly string[];
}

/** A turn: parts of one API answer on several lines, or the n-th turn of one line. */
interface TurnPlace {
  readonly nodes: readonly Node[];
  readonly nth: number;
}

export type ReadLines = (lines: readonly number[]) => Promise<readonly (Element | BrokenElement)[]>;

/** Collects the events of a file, line by line, then tells its trajectories. */
export class ClaudeCodeSession {
  private readonly nodes: Node[] = [];
  private readonly byUuid = new Map<string, Node>();
  private readonly toolNames = new Map<string, string>();
  private readonly others: { [type: string]: number } = {};
  private title: string | null = null;
  private session: string | null = null;
  private model: string | null = null;
  private facts: JsonObject = {};
  private started: number | null = null;
  private ended: number | null = null;

  constructor(private readonly readLines: ReadLines) {}

  add(event: JsonObject, line: number): void {
    if (!isClaudeCodeEvent(event)) {
      const type = text(event["type"]) ?? "unknown";
      this.others[type] = (this.others[type] ?? 0) + 1;
      if (type === "summary") this.title = text(event["summary"]) ?? this.title;
      return;
    }
    const uuid = event["uuid"] as string;
    // A session that was resumed repeats its events; the first of a name counts.
    if (this.byUuid.has(uuid)) return;
    const message = object(event["message"]);
    const blocks = array(message["content"]);
    const ids = (type: string, key: string) =>
      blocks.flatMap((block) => (isObject(block) && block["type"] === type ? (name(block[key]) ?? []) : []));
    for (const block of blocks) {
      const id = isObject(block) && block["type"] === "tool_use" ? name(block["id"]) : null;
      if (id !== null) this.toolNames.set(id, name(object(block)["name"]) ?? "");
    }
    const assistant = event["type"] === "assistant";
    const boundary = event["subtype"] === "compact_boundary";
    const node: Node = {
      line,
      uuid,
      parent: text(event["parentUuid"]) ?? (boundary ? this.compacted(event) : null),
      sidechain: event["isSidechain"] === true,
      assistant,
      message: assistant ? name(message["id"]) : null,
      turns: turnsOfLine(event, "", () => "").length,
      toolUses: ids("tool_use", "id"),
      results: ids("tool_result", "tool_use_id"),
    };
    this.nodes.push(node);
    this.byUuid.set(uuid, node);
    this.session ??= name(event["sessionId"]);
    if (assistant) this.model ??= text(message["model"]);
    const at = time(event["timestamp"]);
    if (at !== null) {
      this.started = Math.min(this.started ?? at, at);
      this.ended = Math.max(this.ended ?? at, at);
    }
    for (const key of ["cwd", "version", "gitBranch", "slug", "agentId"])
      if (this.facts[key] === undefined && event[key] !== undefined) this.facts[key] = event[key];
  }

  /** What a compaction goes on with: the event it names, else the last of the main line. */
  private compacted(event: JsonObject): string | null {
    const named = text(event["logicalParentUuid"]);
    if (named !== null && this.byUuid.has(named)) return named;
    return this.nodes.findLast((node) => !node.sidechain)?.uuid ?? null;
  }

  get count(): number {
    return this.nodes.length;
  }

  /** Before all lines were seen: the main line in the order of the file. */
  soFar(row: Row): RowTrajectory[] {
    return [
      this.trajectory(
        row,
        this.nodes.filter((node) => !node.sidechain),
        0,
        1,
        null,
      ),
    ];
  }

  /** The main line first: the one that was written to last. */
  trajectories(row: Row): RowTrajectory[] {
    const paths = this.paths();
    const first = paths[0]?.nodes ?? [];
    return paths.map(({ nodes }, index) =>
      this.trajectory(row, nodes, index, paths.length, index === 0 ? null : parting(first, nodes)),
    );
  }

  private paths(): { readonly nodes: readonly Node[] }[] {
    const inner = new Set(this.nodes.map((node) => node.parent));
    const leaves = this.nodes.filter((node) => !inner.has(node.uuid));
    // Side chains last; among the others the newest is the main one.
    leaves.sort((a, b) => Number(a.sidechain) - Number(b.sidechain) || b.line - a.line);
    const taken = new Set<Node>();
    const paths: { nodes: readonly Node[] }[] = [];
    for (const leaf of leaves) {
      if (taken.has(leaf)) continue;
      const path = this.pathTo(leaf);
      const along = this.withAnswers(path, leaves);
      for (const node of along) taken.add(node);
      paths.push({ nodes: along });
    }
    return paths;
  }

  private pathTo(leaf: Node): Node[] {
    const path: Node[] = [];
    const seen = new Set<string>();
    for (let node: Node | undefined = leaf; node !== undefined && !seen.has(node.uuid); ) {
      seen.add(node.uuid);
      path.push(node);
      node = node.parent === null ? undefined : this.byUuid.get(node.parent);
    }
    return path.reverse();
  }

  /** Answers to parallel calls end beside the line; they belong to it all the same. */
  private withAnswers(path: readonly Node[], leaves: readonly Node[]): Node[] {
    const on = new Set(path);
    const uses = new Set(path.flatMap((node) => node.toolUses));
    const answered = new Set(path.flatMap((node) => node.results));
    const beside = leaves.filter(
      (leaf) =>
        !on.has(leaf) &&
        leaf.results.length > 0 &&
        leaf.results.every((id) => uses.has(id) && !answered.has(id)) &&
        leaf.parent !== null &&
        on.has(this.byUuid.get(leaf.parent) as Node),
    );
    if (beside.length === 0) return [...path];
    const along = [...path];
    for (const answer of beside.sort((a, b) => a.line - b.line)) {
      const after = along.findLastIndex((node) => node.line < answer.line);
      along.splice(after + 1, 0, answer);
    }
    return along;
  }

  private trajectory(row: Row, nodes: readonly Node[], index: number, of: number, parts: number | null): RowTrajectory {
    const places = placesOf(nodes);
    const sidechain = nodes.at(-1)?.sidechain === true;
    const id = this.session ?? "session";
    return {
      header: header(row, {
        id: index === 0 ? id : `${id}/${index}`,
        labels: sidechain ? ["sidechain"] : [],
        model: this.model,
        branch:
          of === 1 && !sidechain
            ? null
            : { kind: sidechain ? "sidechain" : "branch", index, of, parts, drifted: false },
        started: this.started,
        ended: this.ended,
        metadata: { ...this.facts, title: this.title, sessionId: this.session, otherLines: { ...this.others } },
      }),
      turns: {
        count: places.length,
        read: async (from, to) => {
          const wanted = places.slice(Math.max(0, from), to);
          const lines = [...new Set(wanted.flatMap((place) => place.nodes.map((node) => node.line)))];
          const elements = await this.readLines(lines);
          const byLine = new Map(lines.map((line, at) => [line, elements[at] as Element | BrokenElement]));
          return wanted.map((place) => this.turnAt(place, byLine));
        },
      },
    };
  }

  private turnAt({ nodes, nth }: TurnPlace, byLine: ReadonlyMap<number, Element | BrokenElement>): ImportedTurn {
    const made = nodes.map((node) => {
      const element = byLine.get(node.line) as Element | BrokenElement;
      if ("problem" in element || !isObject(element.value))
        return turn("user", {
          parts: [textPart(element.text)],
          problem: "problem" in element ? element.problem : "no object",
          source: element.source,
        });
      const turns = turnsOfLine(element.value, element.text, (id) => this.toolNames.get(id) ?? null);
      return { ...(turns[nth] ?? turn("user", { problem: "the line changed" })), source: element.source };
    });
    return joined(made as [ImportedTurn, ...ImportedTurn[]]);
  }
}

/** One API answer that was written in parts. */
function joined(parts: readonly [ImportedTurn, ...ImportedTurn[]]): ImportedTurn {
  const [first] = parts;
  const last = parts.at(-1) as ImportedTurn;
  if (parts.length === 1) return first;
  return {
    ...first,
    parts: parts.flatMap((part) => part.parts),
    toolCalls: parts.flatMap((part) => part.toolCalls),
    kinds: parts.flatMap((part) => part.kinds),
    ended: last.started,
    finishReason: last.finishReason ?? first.finishReason,
    source: first.source && last.source ? { ...first.source, end: last.source.end } : first.source,
    problem: parts.find((part) => part.problem !== null)?.problem ?? null,
  };
}

function parting(first: readonly Node[], other: readonly Node[]): number | null {
  const at = other.findIndex((node, index) => node !== first[index]);
  return at < 0 ? null : placesOf(other.slice(0, at)).length;
}

function placesOf(nodes: readonly Node[]): TurnPlace[] {
  const places: TurnPlace[] = [];
  for (const node of nodes) {
    const before = places.at(-1);
    if (node.message !== null && before?.nodes.at(-1)?.message === node.message) {
      places[places.length - 1] = { nodes: [...before.nodes, node], nth: 0 };
    } else for (let nth = 0; nth < node.turns; nth++) places.push({ nodes: [node], nth });
  }
  return places;
}

function turnsOfLine(event: JsonObject, source: string, toolName: (id: string) => string | null): ImportedTurn[] {
  const type = event["type"] as string;
  const message = object(event["message"]);
  const started = time(event["timestamp"]);
  const marks = [
    ...(event["isMeta"] === true ? ["meta"] : []),
    ...(event["isCompactSummary"] === true ? ["compact summary"] : []),
  ];
  if (type === "system") {
    const subtype = text(event["subtype"]);
    const kinds = [subtype === null ? "system" : `system:${subtype}`, ...marks];
    return [turn("system", { parts: [textPart(text(event["content"]) ?? "")], kinds, started })];
  }
  if (type !== "user" && type !== "assistant") return [];
  const kinds = [type, ...marks];
  const content = message["content"];
  if (type === "assistant") {
    const blocks = array(content);
    const spoken = blocks.filter((block) => !isObject(block) || block["type"] !== "tool_use");
    const toolCalls = blocks.flatMap((block, index) =>
      isObject(block) && block["type"] === "tool_use"
        ? [
            {
              id: name(block["id"]),
              name: name(block["name"]) ?? "",
              arguments:
                source === ""
                  ? ""
                  : argumentsText(block["input"], () => source, ["message", "content", index, "input"]),
            },
          ]
        : [],
    );
    const parts = typeof content === "string" ? partsOf(content) : partsOf(spoken as JsonValue);
    return [turn("assistant", { parts, toolCalls, kinds, started, finishReason: text(message["stop_reason"]) })];
  }
  if (!Array.isArray(content)) return [turn("user", { parts: partsOf(content), kinds, started })];
  const turns: ImportedTurn[] = [];
  let said: JsonValue[] = [];
  const flush = () => {
    if (said.length > 0) turns.push(turn("user", { parts: partsOf(said), kinds, started }));
    said = [];
  };
  for (const block of content) {
    if (!isObject(block) || block["type"] !== "tool_result") {
      said.push(block);
      continue;
    }
    flush();
    const id = name(block["tool_use_id"]);
    const parts = partsOf(block["content"]);
    const failed = block["is_error"] === true;
    const said1 = parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n");
    turns.push(
      turn("tool", {
        parts,
        kinds,
        started,
        result: { callId: id, name: id === null ? null : toolName(id), error: failed ? said1 : null },
      }),
    );
  }
  flush();
  return turns.length === 0 ? [turn("user", { kinds, started })] : turns;
}
