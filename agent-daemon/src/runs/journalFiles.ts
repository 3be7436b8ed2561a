// The files of a journal and how they follow each other: `journal.jsonl` is written; when it is full, what it and everything before
// it say is condensed into `journal.snapshot.jsonl`, it becomes `journal.1.jsonl` (replacing the one before), and a new one begins.
// Whoever reads them in any moment gets each event once, because events are numbered and a snapshot says up to which it goes.
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

export interface JournalFiles {
  readonly current: string;
  readonly previous: string;
  readonly snapshot: string;
}

export function journalFiles(current: string): JournalFiles {
  const stem = join(dirname(current), basename(current, ".jsonl"));
  return { current, previous: `${stem}.1.jsonl`, snapshot: `${stem}.snapshot.jsonl` };
}

export interface RotationLimits {
  /** Bytes of `journal.jsonl` after which a new one begins. */
  readonly fileBytes: number;
  /** Bytes that a snapshot may have; beyond, older steps are thinned out. */
  readonly snapshotBytes: number;
}

export const rotationLimits: RotationLimits = { fileBytes: 8_000_000, snapshotBytes: 64_000_000 };

/** Kept whole in a snapshot: the newest of each. */
const keptSteps = 1000;
const kept = { warning: 200, checkpoint: 100, evaluation: 2000, mismatch: 20 } as const;

interface Line {
  readonly n: number;
  readonly type: string;
  readonly bytes: Buffer;
}

const linePattern = /^\{"n":(\d+),"at":[^,]+,"attempt":\d+,"type":"(\w+)"/;
const headPattern = /^\{"upTo":(\d+)\}/;

/** Whole lines of a file with their numbers; what is no event is left out. */
function linesOf(bytes: Buffer): Line[] {
  const lines: Line[] = [];
  for (let start = 0; ; ) {
    const end = bytes.indexOf(0x0a, start);
    if (end < 0) return lines;
    const found = linePattern.exec(bytes.toString("latin1", start, Math.min(end, start + 160)));
    if (found !== null) lines.push({ n: Number(found[1]), type: found[2]!, bytes: bytes.subarray(start, end + 1) });
    start = end + 1;
  }
}

export function readOrNothing(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
}

/** Number up to which a snapshot goes; 0 when there is none. */
export function snapshotEnd(bytes: Buffer): number {
  const found = headPattern.exec(bytes.toString("latin1", 0, 64));
  return found === null ? 0 : Number(found[1]);
}

/** What a snapshot keeps of events: lines as they were written, in order. */
function condense(lines: readonly Line[], mostBytes: number): Line[] {
  const seen = new Map<string, number>();
  const newestFirst = [...lines].reverse().filter(({ type }) => {
    const count = (seen.get(type) ?? 0) + 1;
    seen.set(type, count);
    if (type === "started" || type === "step") return true;
    return count <= (kept[type as keyof typeof kept] ?? 1);
  });
  let wanted = newestFirst.reverse();
  const size = () => wanted.reduce((sum, { bytes }) => sum + bytes.length, 0);
  while (size() > mostBytes) {
    // Every other step but the newest goes: the curve stays, and exact values stand in the store.
    const steps = wanted.filter(({ type }) => type === "step");
    const thinned = steps.slice(0, -keptSteps);
    if (thinned.length < 2) break;
    const gone = new Set(thinned.filter((_, index) => index % 2 === 1));
    wanted = wanted.filter((line) => !gone.has(line));
  }
  return wanted;
}

/** Condenses and begins a new current file, which is empty. A crash in between loses nothing: numbers tell what stands twice. */
export function rotateJournal(files: JournalFiles, limits: RotationLimits): void {
  const before = readOrNothing(files.snapshot);
  const upTo = snapshotEnd(before);
  const now = linesOf(readOrNothing(files.current)).filter(({ n }) => n > upTo);
  const last = now.at(-1)?.n ?? upTo;
  const lines = condense([...linesOf(before), ...now], limits.snapshotBytes);
  const snapshot = `${files.snapshot}.part`;
  const next = `${files.current}.part`;
  try {
    writeFileSync(snapshot, Buffer.concat([Buffer.from(`{"upTo":${last}}\n`), ...lines.map(({ bytes }) => bytes)]), {
      mode: 0o600,
    });
    writeFileSync(next, "", { mode: 0o600 });
    renameSync(snapshot, files.snapshot);
    rmSync(files.previous, { force: true });
    try {
      linkSync(files.current, files.previous);
    } catch {
      // A file system without hard links keeps no previous file; readers that are behind take the snapshot.
    }
    renameSync(next, files.current);
  } catch (error) {
    rmSync(snapshot, { force: true });
    rmSync(next, { force: true });
    throw error;
  }
}
