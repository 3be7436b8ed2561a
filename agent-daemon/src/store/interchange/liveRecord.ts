// A record too large to be parsed whole, while its bytes are being read: its first turns can be read long before its end is known.
import type { ByteSource } from "./byteSource.ts";
import { formatOf } from "./detectFormat.ts";
import { rowError } from "./importError.ts";
import { compilePlan, JsonScanner } from "./jsonScanner.ts";
import { completeBeginning, type JsonObject, parseExact } from "./jsonText.ts";
import { isObject, largestSkeleton, placeOf, type Row, type RowPlace, scannedRow } from "./row.ts";
import type { RecordHandle, TrajectoryIndex } from "./trajectoryIndex.ts";
import type { RowFormat, RowTrajectory } from "./turns.ts";

export const chunkBytes = 1 << 20;

export class LiveRecord {
  private readonly scanner: JsonScanner;
  private position: number;
  private shown: { readonly first: number; readonly trajectories: readonly RowTrajectory[] } | null = null;

  constructor(
    private readonly source: ByteSource,
    private readonly place: Omit<RowPlace, "end">,
    private readonly format: RowFormat,
    private readonly index: TrajectoryIndex,
  ) {
    this.scanner = new JsonScanner(compilePlan(format), largestSkeleton);
    this.position = place.start;
  }

  /** The value is over, well or not. */
  get done(): boolean {
    return this.scanner.done;
  }

  /** Just past what was read of the value. */
  get end(): number {
    return this.position;
  }

  /** Reads on, up to byte `to`. */
  async readTo(to: number): Promise<void> {
    while (this.position < to && !this.scanner.done) {
      const chunk = await this.source.read(this.position, Math.min(chunkBytes, to - this.position));
      this.position += this.scanner.feed(chunk, this.position);
      await this.show();
    }
  }

  /** All bytes of the record were read. Returns false when it could not be read to its end; what was found stays readable. */
  async finish(end: number, report = true): Promise<boolean> {
    this.scanner.end(end);
    const place = { ...this.place, end };
    const { error } = this.scanner;
    if (error === null) {
      const value = this.skeleton(true);
      if (value !== null) {
        const format = this.finalFormat(value);
        const row = scannedRow(this.source, place, this.scanner, value, true);
        this.settle(row, format, await format.open(row));
        return true;
      }
    }
    if (report) {
      const where = placeOf(this.source, { line: this.place.line, start: error?.at ?? this.place.start });
      const why = error?.why ?? "what stands beside its lists is no valid JSON";
      this.index.problem(rowError(where, `this record is damaged: ${why}. What could be read of it is shown.`));
    }
    const value = this.skeleton(false) ?? {};
    const row = scannedRow(this.source, place, this.scanner, value, false);
    if (this.scanner.lists.size > 0) this.settle(row, this.format, await this.format.open(row));
    return false;
  }

  private async show(): Promise<void> {
    if (this.shown !== null) {
      this.index.grow(this.shown.first, this.shown.trajectories);
      return;
    }
    if (![...this.scanner.lists.values()].some((list) => list.count > 0)) return;
    const row = scannedRow(
      this.source,
      { ...this.place, end: this.position },
      this.scanner,
      this.skeleton(false) ?? {},
      false,
    );
    const trajectories = await this.format.open(row);
    if (trajectories.length === 0) return;
    this.shown = { first: this.index.add(this.handle(row, this.format, trajectories), trajectories), trajectories };
  }

  private settle(row: Row, format: RowFormat, trajectories: readonly RowTrajectory[]): void {
    const handle = this.handle(row, format, trajectories);
    if (this.shown === null) this.index.add(handle, trajectories);
    else this.index.replace(this.shown.first, this.shown.trajectories.length, handle, trajectories);
  }

  private handle(row: Row, { format }: RowFormat, trajectories: readonly RowTrajectory[]): RecordHandle {
    const { start, end, line } = row.place;
    const source = { start, end, line, member: this.source.member };
    return { format, source, complete: row.complete, open: async () => trajectories };
  }

  private skeleton(whole: boolean): JsonObject | null {
    const text = this.scanner.text();
    try {
      const value = whole ? parseExact(text) : completeBeginning(text);
      return isObject(value) ? value : whole && this.scanner.lists.has("") ? {} : null;
    } catch {
      return null;
    }
  }

  /** Keys that come late may tell a wrapped list of messages from a bare one. */
  private finalFormat(value: JsonObject): RowFormat {
    if (this.format.format !== "openai-chat") return this.format;
    const seen = formatOf({ ...value, ...(this.scanner.lists.has("messages") ? { messages: [] } : {}) });
    return seen?.format === "mini-swe-agent" ? seen : this.format;
  }
}
