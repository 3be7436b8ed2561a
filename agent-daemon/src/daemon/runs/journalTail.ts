// Follows the files of one journal: hands out each event once and in order, over torn lines, rotations and truncations. Where
// events are missing (rotated away while nobody read, unreadable) it says so and begins again from the snapshot. Reads only.
import { type FileHandle, open, readFile, stat } from "node:fs/promises";
import { setImmediate as breathe } from "node:timers/promises";
import { type JournalEvent, journalEventSchema } from "../../../../protocol/journal.ts";
import { type JournalFiles, readOrNothing, snapshotEnd } from "../../runs/journalFiles.ts";

export interface TailReader {
  /** The next event; its number is one more than that of the last one, or than that of the last gap. */
  event(event: JournalEvent): void;
  /** Forget everything; `past` and `gap` follow. */
  restart(): void;
  /** An event of the snapshot. */
  past(event: JournalEvent): void;
  /** Up to this number not every event was handed out: who follows needs a snapshot. */
  gap(upTo: number): void;
}

const chunkBytes = 256 * 1024;

interface OpenFile {
  readonly handle: FileHandle;
  readonly inode: number;
  /** Behind the last whole line that was read. */
  offset: number;
}

export class JournalTail {
  readonly #files: JournalFiles;
  readonly #reader: TailReader;
  #open: OpenFile | null = null;
  #cursor = 0;
  #began = false;
  #reading: Promise<void> | null = null;
  #again = false;
  #disposed = false;

  constructor(files: JournalFiles, reader: TailReader) {
    this.#files = files;
    this.#reader = reader;
  }

  /** Reads what is new; calls while it reads are one more look afterwards. */
  refresh(): Promise<void> {
    if (this.#disposed) return Promise.resolve();
    if (this.#reading !== null) {
      this.#again = true;
      return this.#reading;
    }
    this.#reading = (async () => {
      try {
        do {
          this.#again = false;
          await this.#read();
        } while (this.#again && !this.#disposed);
      } finally {
        this.#reading = null;
      }
    })();
    return this.#reading;
  }

  async dispose(): Promise<void> {
    this.#disposed = true;
    await this.#reading?.catch(() => {});
    await this.#open?.handle.close();
    this.#open = null;
  }

  async #read(): Promise<void> {
    for (;;) {
      const found = await stat(this.#files.current).catch(() => null);
      if (found === null) return;
      const held = this.#open;
      if (held !== null && held.inode === found.ino) {
        if (found.size < held.offset) {
          // Somebody put another file's contents there.
          await this.#startOver();
          continue;
        }
        await this.#readFrom(held);
        if ((await stat(this.#files.current).catch(() => null))?.ino === held.inode) return;
        continue;
      }
      // Rotated, or never opened. The old file is read to its end first: nothing is written to it any more.
      if (held !== null) {
        await this.#readFrom(held);
        await this.#close();
      }
      if (!(await this.#openNext())) return;
    }
  }

  /** Opens the current file at its begin, after what lies between the cursor and it. */
  async #openNext(): Promise<boolean> {
    const handle = await open(this.#files.current, "r").catch(() => null);
    if (handle === null) return false;
    const { ino } = await handle.stat();
    this.#open = { handle, inode: ino, offset: 0 };
    const snapshot = readOrNothing(this.#files.snapshot);
    const upTo = snapshotEnd(snapshot);
    if (!this.#began || upTo > this.#cursor) {
      const previous = this.#began ? await this.#previousEvents() : [];
      if (previous.length > 0 && previous[0]!.n === this.#cursor + 1) {
        for (const event of previous) this.#hand(event);
      } else {
        this.#reader.restart();
        this.#cursor = 0;
        for (const line of linesBehind(snapshot, upTo)) {
          const event = parseEvent(line);
          if (event !== null) this.#reader.past(event);
        }
        this.#cursor = upTo;
        this.#reader.gap(upTo);
      }
      this.#began = true;
    }
    return true;
  }

  /** Events after the cursor in the file before the current one. */
  async #previousEvents(): Promise<JournalEvent[]> {
    const bytes = await readFile(this.#files.previous).catch(() => Buffer.alloc(0));
    return bytes
      .toString("utf8")
      .split("\n")
      .map(parseEvent)
      .filter((event): event is JournalEvent => event !== null && event.n > this.#cursor);
  }

  async #startOver(): Promise<void> {
    await this.#close();
    this.#began = false;
    this.#cursor = 0;
  }

  async #close(): Promise<void> {
    await this.#open?.handle.close();
    this.#open = null;
  }

  async #readFrom(file: OpenFile): Promise<void> {
    let held = Buffer.alloc(0);
    for (;;) {
      const chunk = Buffer.allocUnsafe(chunkBytes);
      const { bytesRead } = await file.handle.read(chunk, 0, chunkBytes, file.offset + held.length);
      if (bytesRead === 0) return;
      const bytes =
        held.length === 0 ? chunk.subarray(0, bytesRead) : Buffer.concat([held, chunk.subarray(0, bytesRead)]);
      const whole = bytes.lastIndexOf(0x0a) + 1;
      for (const line of bytes.subarray(0, whole).toString("utf8").split("\n")) {
        const event = parseEvent(line);
        if (event === null || event.n <= this.#cursor) continue;
        // A line in between could not be read: nobody must wait for a number that never comes.
        if (event.n !== this.#cursor + 1) this.#reader.gap(event.n - 1);
        this.#hand(event);
      }
      file.offset += whole;
      held = Buffer.from(bytes.subarray(whole));
      if (this.#disposed) return;
      await breathe();
    }
  }

  #hand(event: JournalEvent): void {
    this.#cursor = event.n;
    this.#reader.event(event);
  }
}

function linesBehind(snapshot: Buffer, upTo: number): string[] {
  return upTo === 0 ? [] : snapshot.toString("utf8").split("\n").slice(1);
}

function parseEvent(line: string): JournalEvent | null {
  if (line === "") return null;
  try {
    return journalEventSchema.parse(JSON.parse(line));
  } catch {
    return null;
  }
}
