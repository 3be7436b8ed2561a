// One run as the daemon sees it: its journal folded, its newest events, its numbers in columns, and whether a process is there.
// It tells listeners that something changed; what they make of it is theirs.
import { existsSync, type FSWatcher, readFileSync, watch } from "node:fs";
import type { ControlState } from "../../../../protocol/control.ts";
import type { JournalEvent } from "../../../../protocol/journal.ts";
import type { RunSnapshot, RunStatus, RunSummary } from "../../../../protocol/runView.ts";
import { type AdvisoryWatch, watchAdvisories } from "../../runs/advisories/watch.ts";
import { askCoordinator } from "../../runs/controlClient.ts";
import { journalFiles } from "../../runs/journalFiles.ts";
import { readRecipeFolder } from "../../runs/recipeCopy.ts";
import { type RunFolder, runFolderAt } from "../../runs/runFolder.ts";
import type { Clock } from "../../sampling/clock.ts";
import { isSameProcess, startOfProcess } from "../server/processIdentity.ts";
import { crashReportOf, isBeingReported, readExitReport, readStartedProcess } from "../supervisor/crashReport.ts";
import { type DiskUse, diskUseOf } from "./diskUse.ts";
import { JournalTail } from "./journalTail.ts";
import { MetricTable } from "./metricTable.ts";
import { RecentEvents } from "./recentEvents.ts";
import { RunFold } from "./runFold.ts";

const keptEvents = 1024;

/** The process of a run that was seen alive. */
interface LiveProcess {
  readonly pid: number;
  readonly start: string;
  readonly attempt: number;
  /** What its coordinator said last; null while it has not answered yet. */
  state: ControlState | null;
}

type ProcessState =
  | { readonly kind: "unseen" }
  | { readonly kind: "live"; readonly process: LiveProcess }
  /** It was seen alive and is gone. */
  | { readonly kind: "gone"; readonly attempt: number; readonly at: number };

export class KnownRun {
  readonly path: string;
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  readonly #tail: JournalTail;
  #folder: RunFolder;
  #fold = new RunFold();
  #metrics = new MetricTable();
  #recent = new RecentEvents(keptEvents);
  #advisories: AdvisoryWatch;
  #process: ProcessState = { kind: "unseen" };
  #watcher: FSWatcher | null = null;
  #disk: DiskUse | null = null;
  #diskAt = 0;
  #recipeFolder: string | null | undefined;
  #last = "";
  #disposed = false;
  #looking: Promise<void> | null = null;

  constructor(path: string, clock: Clock) {
    this.path = path;
    this.#clock = clock;
    this.#advisories = watchAdvisories(clock);
    this.#folder = runFolderAt(path);
    this.#tail = new JournalTail(journalFiles(this.#folder.journal), {
      event: (event) => {
        this.#take(event);
        this.#recent.push(event);
      },
      past: (event) => this.#take(event),
      restart: () => {
        this.#fold = new RunFold();
        this.#metrics = new MetricTable();
        this.#advisories = watchAdvisories(clock);
        this.#recent.beginAfter(0);
      },
      gap: (upTo) => {
        this.#fold.cursor = Math.max(this.#fold.cursor, upTo);
        this.#recent.beginAfter(upTo);
      },
    });
  }

  get folder(): RunFolder {
    return this.#folder;
  }

  get fold(): RunFold {
    return this.#fold;
  }

  get metrics(): MetricTable {
    return this.#metrics;
  }

  /** Whether a process of it is alive, as far as is known. */
  get isLive(): boolean {
    return this.#process.kind === "live";
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Events after a cursor; null: only a snapshot helps. */
  eventsAfter(cursor: number, limit: number): readonly JournalEvent[] | null {
    return this.#recent.after(cursor, limit);
  }

  /** Reads what is new and looks after its process; listeners hear of it when something is different. */
  refresh(): Promise<void> {
    this.#looking ??= (async () => {
      try {
        await this.#tail.refresh();
        await this.#lookAfterProcess();
        // What the process wrote last may have come after the first look.
        if (this.#process.kind !== "live") await this.#tail.refresh();
        this.#tell();
      } finally {
        this.#looking = null;
      }
    })();
    return this.#looking;
  }

  /** Hears of changes from now on, without anybody asking. */
  watch(): void {
    if (this.#watcher !== null || this.#disposed) return;
    try {
      this.#watcher = watch(this.path, { persistent: false }, (_, name) => {
        if (name === null || /^(journal|control|exit)/.test(name)) void this.#refreshSoon();
      });
      this.#watcher.on("error", () => this.unwatch());
    } catch {
      // No watches left, or none on this file system: the slow look finds changes too.
    }
  }

  unwatch(): void {
    this.#watcher?.close();
    this.#watcher = null;
  }

  #queued = false;
  async #refreshSoon(): Promise<void> {
    if (this.#queued) return;
    this.#queued = true;
    try {
      await this.#looking?.catch(() => {});
      this.#queued = false;
      await this.refresh();
    } catch {
      this.#queued = false;
    }
  }

  /** The supervisor started a process for it. */
  begun(pid: number, start: string, attempt: number): void {
    this.#process = { kind: "live", process: { pid, start, attempt, state: null } };
    this.#tell();
  }

  /** What its coordinator answered to a command. */
  answered(state: ControlState): void {
    const start = startOfProcess(state.pid);
    if (start === null) return;
    this.#process = { kind: "live", process: { pid: state.pid, start, attempt: state.attempt, state } };
    this.#tell();
  }

  /**
   * Ends its process, which does not listen to its coordinator's commands. The helper says how it ended, and ends what it left.
   * Returns whether the process was there; a number that belongs to another process by now is not touched.
   */
  end(): boolean {
    if (this.#process.kind !== "live") return false;
    const { pid, start } = this.#process.process;
    if (!isSameProcess(pid, start)) return false;
    process.kill(pid, "SIGKILL");
    return true;
  }

  async #lookAfterProcess(): Promise<void> {
    const known = this.#process;
    if (
      known.kind === "live" &&
      known.process.state !== null &&
      isSameProcess(known.process.pid, known.process.start)
    ) {
      // Its control file still names it: it tells what it does through the journal.
      if (this.#controlPid() === known.process.pid) {
        const { phase } = this.#fold;
        if (phase !== null && known.process.attempt === this.#fold.attempt)
          known.process.state = { ...known.process.state, phase };
        return;
      }
    }
    if (existsSync(this.#folder.control)) {
      const state = await askCoordinator(this.#folder, "status").catch(() => null);
      if (state !== null) {
        this.answered(state);
        return;
      }
    }
    if (
      known.kind === "live" &&
      !isSameProcess(known.process.pid, known.process.start) &&
      !isBeingReported(this.#folder, known.process.pid)
    )
      this.#process = { kind: "gone", attempt: known.process.attempt, at: this.#clock.now() };
    if (known.kind === "unseen") {
      // Started by a daemon that is gone, and not listening yet.
      const started = readStartedProcess(this.#folder);
      if (started !== null && isSameProcess(started.pid, started.start)) {
        const { pid, start, attempt } = started;
        this.#process = { kind: "live", process: { pid, start, attempt, state: null } };
      }
    }
  }

  #controlPid(): number | null {
    try {
      return (JSON.parse(readFileSync(this.#folder.control, "utf8")) as { pid?: number }).pid ?? null;
    } catch {
      return null;
    }
  }

  #take(event: JournalEvent): void {
    if (event.type === "started") {
      this.#folder = runFolderAt(this.path);
      this.#recipeFolder = undefined;
    }
    if (event.type === "step") this.#metrics.add(event);
    if (event.type === "checkpoint") this.#diskAt = 0;
    this.#advisories.read(event);
    this.#fold.read(event);
  }

  status(): RunStatus {
    const { attempt, ended } = this.#fold;
    if (this.#process.kind === "live") {
      const { process } = this.#process;
      if (process.attempt > attempt || attempt === 0) return "starting";
      if (ended !== null) return ended.status;
      if (process.state?.phase === "paused" || this.#fold.phase === "paused") return "paused";
      return process.state?.stopping === true || this.#fold.phase === "stopping" ? "stopping" : "running";
    }
    if (ended !== null && !(this.#process.kind === "gone" && this.#process.attempt > attempt)) return ended.status;
    if (this.#process.kind === "gone" || crashReportOf(this.#folder, this.#fold.lastAt) !== null) return "crashed";
    return "lost";
  }

  summary(): RunSummary {
    const fold = this.#fold;
    const status = this.status();
    const live = this.#process.kind === "live" ? this.#process.process : null;
    const crash =
      status === "crashed"
        ? crashReportOf(this.#folder, fold.lastAt, this.#process.kind === "gone" ? this.#process.at : null)
        : null;
    return {
      folder: this.path,
      run: this.#folder.run,
      recipe: fold.recipe === "" ? this.#folder.name : fold.recipe,
      recipeFolder: this.#recipe(),
      model: fold.model,
      status,
      phase: live === null ? null : fold.phase,
      attempt: Math.max(fold.attempt, live?.attempt ?? 0),
      step: fold.step,
      steps: fold.steps,
      reward: fold.reward,
      loss: fold.loss,
      evaluation: fold.evaluation(),
      begun: fold.begun,
      ended: fold.ended?.at ?? crash?.at ?? null,
      pid: live?.pid ?? null,
      error: fold.ended?.error ?? null,
      crash,
      advisories: this.#noticed(status),
    };
  }

  snapshot(): RunSnapshot {
    this.#countDisk();
    return {
      summary: this.summary(),
      ...this.#fold.snapshotParts(),
      metricNames: [...this.#metrics.names()],
      disk: this.#disk,
    };
  }

  #recipe(): string | null {
    if (this.#recipeFolder === undefined) {
      try {
        this.#recipeFolder = readRecipeFolder(this.#folder);
      } catch {
        this.#recipeFolder = null;
      }
    }
    return this.#recipeFolder;
  }

  #noticed(status: RunStatus): RunSummary["advisories"] {
    return [...this.#advisories.inForce(status === "running" || status === "stopping")];
  }

  #countDisk(): void {
    const now = this.#clock.now();
    if (now - this.#diskAt < 30_000) return;
    this.#diskAt = now;
    void diskUseOf(this.#folder).then((use) => {
      this.#disk = use;
    });
  }

  #tell(): void {
    if (this.#disposed) return;
    const live = this.#process.kind === "live" ? this.#process.process : null;
    // How it ended may be known later than that it did.
    const report = live === null ? (readExitReport(this.#folder)?.at ?? "") : "";
    const status = this.status();
    // A phase that lasts too long brings no event.
    const noticed = this.#noticed(status).map(({ kind, from, severity }) => `${kind} ${from} ${severity}`);
    const shown = [this.#fold.cursor, status, live?.pid ?? "", report, ...noticed].join(" ");
    if (shown === this.#last) return;
    this.#last = shown;
    for (const listener of [...this.#listeners]) listener();
  }

  async dispose(): Promise<void> {
    this.#disposed = true;
    this.unwatch();
    this.#listeners.clear();
    await this.#looking?.catch(() => {});
    await this.#tail.dispose();
  }
}
