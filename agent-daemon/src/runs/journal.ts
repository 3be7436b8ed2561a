// Writes and reads a run's journal. Only the coordinator of a run writes it; readers tolerate a last line that a crash
// tore, and a writer that opens such a file cuts that line off and says so. Whole lines are never changed.
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { RollscopeError } from "../../../protocol/errors.ts";
import {
  type JournalEvent,
  type JournalEventBody,
  journalEventSchema,
  journalLine,
} from "../../../protocol/journal.ts";
import {
  journalFiles,
  type RotationLimits,
  readOrNothing,
  rotateJournal,
  rotationLimits,
  snapshotEnd,
} from "./journalFiles.ts";

export interface JournalContents {
  readonly events: readonly JournalEvent[];
  /** Bytes of a last line that was not written whole; 0 = none. */
  readonly tornBytes: number;
  /** Lines that could not be read, with their number from 1. */
  readonly unreadable: readonly { readonly line: number; readonly reason: string }[];
  /** Whether the last whole line is one of them. */
  readonly endsUnreadable: boolean;
}

/**
 * The events of a journal that are kept, in order; an absent file has none. Of those before its last rotation, a snapshot keeps what
 * views need, so their numbers have gaps.
 */
export function readJournal(file: string): JournalContents {
  const files = journalFiles(file);
  for (;;) {
    const snapshot = readOrNothing(files.snapshot);
    const upTo = snapshotEnd(snapshot);
    const before = parseLines(snapshot.subarray(upTo === 0 ? snapshot.length : snapshot.indexOf(0x0a) + 1));
    const now = parseLines(readOrNothing(files.current));
    const events = [...before.events, ...now.events.filter(({ n }) => n > upTo)];
    // A rotation between the two reads shows in a newer snapshot.
    if (snapshotEnd(readOrNothing(files.snapshot)) === upTo) return { ...now, events };
  }
}

function parseLines(bytes: Buffer): JournalContents {
  const whole = bytes.lastIndexOf(0x0a) + 1;
  const events: JournalEvent[] = [];
  const unreadable: { line: number; reason: string }[] = [];
  const lines = bytes.subarray(0, whole).toString("utf8").split("\n");
  lines.pop();
  for (const [index, text] of lines.entries()) {
    try {
      events.push(journalEventSchema.parse(JSON.parse(text)));
    } catch (error) {
      unreadable.push({ line: index + 1, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  const endsUnreadable = unreadable.at(-1)?.line === lines.length && lines.length > 0;
  return { events, tornBytes: bytes.length - whole, unreadable, endsUnreadable };
}

export interface Journal {
  /** Appends an event; it is in the file when this returns. */
  append(body: JournalEventBody): JournalEvent;
  /** Bytes of a torn last line that opening removed. */
  readonly tornBytes: number;
  dispose(): void;
}

/**
 * Opens a journal for appending; numbering goes on after its last whole event.
 *
 * @param now milliseconds since 1970
 * @throws RUN_FOLDER_UNWRITABLE naming the file
 */
export function openJournal(
  file: string,
  attempt: number,
  now: () => number,
  limits: RotationLimits = rotationLimits,
): Journal {
  const files = journalFiles(file);
  const open = () => openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
  const opened = unwritable(file, () => {
    const descriptor = open();
    return { descriptor, ...cutTornLine(descriptor), upTo: snapshotEnd(readOrNothing(files.snapshot)) };
  });
  const { tornBytes } = opened;
  let { descriptor } = opened;
  let n = Math.max(opened.number, opened.upTo);
  let fullAt = limits.fileBytes;
  const rotate = (size: number) => {
    try {
      rotateJournal(files, limits);
      const next = open();
      closeSync(descriptor);
      descriptor = next;
      fullAt = limits.fileBytes;
    } catch {
      // The event is written; a disk without room for the snapshot may have it later.
      fullAt = size + limits.fileBytes;
    }
  };
  return {
    tornBytes,
    append(body) {
      const event: JournalEvent = { n: n + 1, at: now(), attempt, ...body };
      const line = Buffer.from(`${journalLine(event)}\n`);
      unwritable(file, () => {
        const end = fstatSync(descriptor).size;
        let written = 0;
        try {
          while (written < line.length) {
            written += writeSync(descriptor, line, written, line.length - written, end + written);
          }
        } catch (error) {
          ftruncateSync(descriptor, end);
          throw error;
        }
        // What could not be written has used up no number: followers wait for each.
        n = event.n;
        if (end + line.length >= fullAt) rotate(end + line.length);
      });
      return event;
    },
    dispose: () => closeSync(descriptor),
  };
}

/** Cuts off what stands behind the last newline; returns how much that was and the number of the last event. */
function cutTornLine(descriptor: number): { number: number; tornBytes: number } {
  const size = fstatSync(descriptor).size;
  const bytes = Buffer.alloc(size);
  for (let read = 0; read < size; ) read += readSync(descriptor, bytes, read, size - read, read);
  const whole = bytes.lastIndexOf(0x0a) + 1;
  if (whole < size) ftruncateSync(descriptor, whole);
  let number = 0;
  for (const text of bytes.subarray(0, whole).toString("utf8").split("\n")) {
    const found = /^\{"n":(\d+),/.exec(text);
    if (found !== null) number = Math.max(number, Number(found[1]));
  }
  return { number, tornBytes: size - whole };
}

function unwritable<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new RollscopeError("RUN_FOLDER_UNWRITABLE", `${file} cannot be written: ${(error as Error).message}.`, {
      next: "Free space or correct the permissions, then `rollscope resume` the run.",
      cause: error,
      at: { path: file },
    });
  }
}
