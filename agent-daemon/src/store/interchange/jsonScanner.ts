// Finds where things lie in one JSON value that may be larger than memory: fed with bytes, it keeps the byte ranges of the
// elements of chosen lists and maps, and the text of everything else. Contents are skipped, not checked: whoever reads them parses.
const tab = 0x09;
const space = 0x20;
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Paths from the value's root, joined by dots; `*` is any element of a list. "" is the root. */
export interface ScanPlan {
  /** Lists whose elements are found. */
  readonly lists: readonly string[];
  /** Objects whose entries are found. */
  readonly maps?: readonly string[];
}

/** Byte ranges of consecutive elements, in order. */
export class RangeList {
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  get count(): number {
    return this.ends.length;
  }
}

interface PlanNode {
  kind: "list" | "map" | null;
  readonly children: Map<string, PlanNode>;
}

interface Frame {
  readonly kind: "object" | "array" | "list" | "map";
  readonly path: string;
  readonly node: PlanNode;
  index: number;
  key: string;
  readonly list: RangeList | null;
  readonly map: Map<string, readonly [number, number]> | null;
}

type State = "value" | "element" | "key" | "colon" | "after" | "done";

const largestKey = 4096;

export class JsonScanner {
  readonly lists = new Map<string, RangeList>();
  readonly maps = new Map<string, Map<string, readonly [number, number]>>();
  /** Why this is no JSON value; scanning has stopped. */
  error: { readonly at: number; readonly why: string } | null = null;
  private readonly frames: Frame[] = [];
  private readonly pieces: Buffer[] = [];
  private pieceBytes = 0;
  private state: State = "value";
  /** Inside a value that is not looked into. */
  private skipping = false;
  private depth = 0;
  private inString = false;
  private oddBackslashes = false;
  private scalar = false;
  private keeping = true;
  private keyBytes: number[] | null = null;

  /** @param largestText of what is kept, in bytes; more is an error */
  constructor(
    private readonly root: PlanNode,
    private readonly largestText: number,
  ) {}

  get done(): boolean {
    return this.state === "done" || this.error !== null;
  }

  /** The value without the elements of the lists and maps: null stands in their place. */
  text(): string {
    return Buffer.concat(this.pieces).toString("utf8");
  }

  /**
   * @param base position of chunk[0]
   * @returns how many bytes belong to the value; fewer than the chunk has when the value ends in it
   */
  feed(chunk: Buffer, base: number): number {
    let at = 0;
    let keepFrom = 0;
    const stopKeeping = (end: number) => {
      if (this.keeping) this.keep(chunk, keepFrom, end);
      this.keeping = false;
    };
    const startKeeping = (from: number) => {
      this.keeping = true;
      keepFrom = from;
    };
    while (at < chunk.length && !this.done) {
      if (this.skipping) {
        at = this.skip(chunk, at);
        if (!this.skipping) this.ended(base + at);
        continue;
      }
      const byte = chunk[at] as number;
      if (this.keyBytes !== null) {
        at = this.readKey(chunk, at);
        continue;
      }
      if (byte === space || (byte >= tab && byte <= 0x0d)) {
        at++;
        continue;
      }
      const frame = this.frames.at(-1);
      switch (this.state) {
        case "element":
          if (byte === closeBracket && frame !== undefined && (frame.kind === "array" || frame.kind === "list")) {
            at++;
            if (frame.kind === "list") startKeeping(at);
            this.pop();
            break;
          }
          at = this.begin(chunk, at, base, stopKeeping);
          break;
        case "value":
          at = this.begin(chunk, at, base, stopKeeping);
          break;
        case "key":
          if (byte === quote) this.keyBytes = [];
          else if (byte === closeBrace && frame !== undefined) {
            if (frame.kind === "map") startKeeping(at + 1);
            this.pop();
          } else if (byte !== comma) this.fail(base + at, "a key is missing");
          at++;
          break;
        case "colon":
          if (byte !== colon) this.fail(base + at, "a colon is missing after a key");
          this.state = "value";
          at++;
          break;
        case "after":
          if (frame === undefined) break;
          if (byte === comma) {
            frame.index++;
            this.state = frame.kind === "object" || frame.kind === "map" ? "key" : "value";
          } else if (byte === closeBrace && (frame.kind === "object" || frame.kind === "map")) {
            if (frame.kind === "map") startKeeping(at + 1);
            this.pop();
          } else if (byte === closeBracket && (frame.kind === "array" || frame.kind === "list")) {
            if (frame.kind === "list") startKeeping(at + 1);
            this.pop();
          } else this.fail(base + at, "a comma or a closing bracket is missing");
          at++;
          break;
      }
    }
    if (this.keeping) this.keep(chunk, keepFrom, at);
    return at;
  }

  /** The bytes have ended: a number at the root ends with them. */
  end(at: number): void {
    if (this.skipping && this.scalar && this.frames.length === 0) {
      this.skipping = false;
      this.ended(at);
    }
    if (!this.done) this.fail(at, "the text ends in the middle of a value");
  }

  private keep(chunk: Buffer, from: number, to: number): void {
    if (to <= from) return;
    this.pieceBytes += to - from;
    if (this.pieceBytes > this.largestText) {
      this.fail(0, `what stands beside its lists is larger than ${this.largestText} bytes`);
      return;
    }
    this.pieces.push(Buffer.from(chunk.subarray(from, to)));
  }

  private fail(at: number, why: string): void {
    this.error ??= { at, why };
  }

  /** A value begins at `at`. */
  private begin(chunk: Buffer, at: number, base: number, stopKeeping: (end: number) => void): number {
    const byte = chunk[at] as number;
    const frame = this.frames.at(-1);
    if (byte === comma || byte === colon || byte === closeBrace || byte === closeBracket) {
      this.fail(base + at, "a value is missing");
      return at;
    }
    if (frame?.kind === "list") {
      frame.list?.starts.push(base + at);
    } else if (frame?.kind === "map") {
      this.mapStart = base + at;
    } else {
      const node =
        frame === undefined ? this.root : (frame.node.children.get(frame.kind === "object" ? frame.key : "*") ?? null);
      const name = frame === undefined ? "" : frame.kind === "object" ? frame.key : `${frame.index}`;
      const path = frame === undefined ? "" : frame.path === "" ? name : `${frame.path}.${name}`;
      if (node !== null) {
        const open = { path, node, index: 0, key: "", list: null, map: null };
        if (byte === openBracket && node.kind === "list") {
          stopKeeping(at);
          this.keep(nullText, 0, nullText.length);
          const list = new RangeList();
          this.lists.set(path, list);
          this.frames.push({ ...open, kind: "list", list });
          this.state = "element";
          return at + 1;
        }
        if (byte === openBrace && node.kind === "map") {
          stopKeeping(at);
          this.keep(nullText, 0, nullText.length);
          const map = new Map<string, readonly [number, number]>();
          this.maps.set(path, map);
          this.frames.push({ ...open, kind: "map", map });
          this.state = "key";
          return at + 1;
        }
        if (node.children.size > 0 && (byte === openBrace || byte === openBracket)) {
          this.frames.push({ ...open, kind: byte === openBrace ? "object" : "array" });
          this.state = byte === openBrace ? "key" : "element";
          return at + 1;
        }
      }
    }
    this.skipping = true;
    this.depth = 0;
    this.inString = byte === quote;
    this.oddBackslashes = false;
    this.scalar = byte !== quote && byte !== openBrace && byte !== openBracket;
    if (byte === openBrace || byte === openBracket) this.depth = 1;
    return at + 1;
  }

  private mapStart = 0;

  /** The skipped value ended just before `at`. */
  private ended(at: number): void {
    const frame = this.frames.at(-1);
    if (frame === undefined) {
      this.state = "done";
      return;
    }
    if (frame.kind === "list") frame.list?.ends.push(at);
    else if (frame.kind === "map") frame.map?.set(frame.key, [this.mapStart, at]);
    this.state = "after";
  }

  private pop(): void {
    this.frames.pop();
    this.state = this.frames.length === 0 ? "done" : "after";
  }

  /** Goes on inside a value that is not looked into; clears `skipping` at its end. */
  private skip(chunk: Buffer, from: number): number {
    let at = from;
    const length = chunk.length;
    if (this.scalar) {
      while (at < length) {
        const byte = chunk[at] as number;
        if (byte === comma || byte === closeBrace || byte === closeBracket || byte <= space) {
          this.skipping = false;
          return at;
        }
        at++;
      }
      return at;
    }
    while (at < length) {
      if (this.inString) {
        const found = chunk.indexOf(quote, at);
        const end = found < 0 ? length : found;
        let before = end - 1;
        while (before >= at && chunk[before] === backslash) before--;
        let odd = (end - 1 - before) % 2 === 1;
        if (before < at && at === 0 && this.oddBackslashes) odd = !odd;
        if (found < 0) {
          this.oddBackslashes = odd;
          return length;
        }
        this.oddBackslashes = false;
        at = found + 1;
        if (odd) {
          // A quote at the very end of a chunk leaves nothing behind that could escape the next one.
          continue;
        }
        this.inString = false;
        if (this.depth === 0) {
          this.skipping = false;
          return at;
        }
        continue;
      }
      const byte = chunk[at++] as number;
      if (byte === quote) {
        this.inString = true;
        this.oddBackslashes = false;
      } else if (byte === openBrace || byte === openBracket) this.depth++;
      else if ((byte === closeBrace || byte === closeBracket) && --this.depth === 0) {
        this.skipping = false;
        return at;
      }
    }
    return at;
  }

  private readKey(chunk: Buffer, from: number): number {
    const bytes = this.keyBytes as number[];
    let at = from;
    while (at < chunk.length) {
      const byte = chunk[at++] as number;
      if (byte === quote && !this.oddBackslashes) {
        const text = Buffer.from(bytes).toString("utf8");
        const frame = this.frames.at(-1) as Frame;
        frame.key = text.includes("\\") ? unescaped(text) : text;
        this.keyBytes = null;
        this.state = "colon";
        return at;
      }
      this.oddBackslashes = byte === backslash && !this.oddBackslashes;
      if (bytes.length < largestKey) bytes.push(byte);
    }
    return at;
  }
}

const nullText = Buffer.from("null");

function unescaped(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return text;
  }
}

/** A plan made ready; one can serve any number of scanners. */
export function compilePlan({ lists, maps = [] }: ScanPlan): PlanNode {
  const root: PlanNode = { kind: null, children: new Map() };
  const add = (path: string, kind: "list" | "map") => {
    let node = root;
    for (const step of path === "" ? [] : path.split(".")) {
      const next = node.children.get(step) ?? { kind: null, children: new Map() };
      node.children.set(step, next);
      node = next;
    }
    node.kind = kind;
  };
  for (const path of lists) add(path, "list");
  for (const path of maps) add(path, "map");
  return root;
}
export type CompiledPlan = PlanNode;
