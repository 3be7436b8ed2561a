import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { KnownRun } from "../../../agent-daemon/src/daemon/runs/knownRun.ts";
import { RunFold } from "../../../agent-daemon/src/daemon/runs/runFold.ts";
import { followRun } from "../../../agent-daemon/src/daemon/runs/runFollower.ts";
import { type Journal, openJournal } from "../../../agent-daemon/src/runs/journal.ts";
import { systemClock } from "../../../agent-daemon/src/sampling/clock.ts";
import type { JournalEvent, JournalEventBody } from "../../../protocol/journal.ts";
import type { RunDelta } from "../../../protocol/runView.ts";

function runFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "rollscope-follow-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const started = (step: number, attempt: number): JournalEventBody => ({
  type: "started",
  run: "r",
  recipe: "toy",
  model: "m",
  steps: 1000,
  seed: 1,
  evaluations: [],
  resumed: attempt === 1 ? null : { step, checkpoint: null, voidedSteps: 0 },
});
const stepOf = (step: number): JournalEventBody => ({
  type: "step",
  step,
  weightVersion: step,
  skipped: null,
  metrics: { loss: step % 5 === 0 ? Number.NaN : step / 3, reward_mean: 0.5 },
  timings: { time_step: 10 },
});

/** Writes a run of several attempts, as a coordinator would, into files that are turned over when they are full. */
class Coordinator {
  readonly events: JournalEvent[] = [];
  readonly #file: string;
  readonly #bytes: number;
  #journal: Journal;
  #attempt = 1;
  #step = 0;

  constructor(folder: string, bytes: number) {
    this.#file = join(folder, "journal.jsonl");
    this.#bytes = bytes;
    this.#journal = this.#open();
    this.#write(started(0, 1));
  }

  #open(): Journal {
    return openJournal(this.#file, this.#attempt, () => 1000 + this.events.length, {
      fileBytes: this.#bytes,
      snapshotBytes: 64_000_000,
    });
  }

  #write(body: JournalEventBody): void {
    this.events.push(this.#journal.append(body));
  }

  step(): void {
    this.#step += 1;
    this.#write({ type: "phase", step: this.#step, phase: this.#step % 2 === 0 ? "sampling" : "training" });
    this.#write(stepOf(this.#step));
    if (this.#step % 3 === 0)
      this.#write({ type: "checkpoint", step: this.#step, checkpoint: `step_${this.#step}`, milliseconds: 1 });
  }

  /** It is killed while it writes, in the middle of a character, and resumed from an earlier step. */
  crash(): void {
    this.#journal.dispose();
    appendFileSync(this.#file, Buffer.from('{"n":99,"at":1,"attempt":1,"type":"warning","note":"é').subarray(0, -1));
    this.#attempt += 1;
    this.#step = Math.max(0, this.#step - 2);
    this.#journal = this.#open();
    this.#write(started(this.#step, this.#attempt));
  }

  dispose(): void {
    this.#journal.dispose();
  }
}

/** A client: takes messages when it wants to, checks that nothing is missing or comes twice, may go and come back. */
class Client {
  cursor: number | null = null;
  readonly snapshots: RunDelta[] = [];
  #release: (() => void) | null = null;
  #queued = 0;
  #follower: { dispose(): void } | null = null;

  constructor(
    readonly run: KnownRun,
    readonly events: readonly JournalEvent[],
  ) {}

  join(): void {
    this.#follower = followRun(
      this.run,
      {
        notify: (_, delta) => {
          this.#queued += 1;
          // One message at a time: the next is not made before this one was taken.
          expect(this.#queued).toBe(1);
          this.#take(delta as RunDelta);
          return new Promise((resolve) => {
            this.#release = () => {
              this.#release = null;
              this.#queued = 0;
              resolve();
            };
          });
        },
      },
      this.cursor,
    );
  }

  #take(delta: RunDelta): void {
    if (delta.kind === "snapshot") {
      const { cursor } = delta.snapshot;
      expect(cursor).toBeGreaterThanOrEqual(this.cursor ?? 0);
      const fold = new RunFold();
      for (const event of this.events.slice(0, cursor)) fold.read(event);
      const { summary: _s, metricNames: _m, disk: _d, ...parts } = delta.snapshot;
      expect(parts).toEqual(fold.snapshotParts());
      expect(delta.snapshot.summary).toMatchObject({ step: fold.step, attempt: fold.attempt });
      this.cursor = cursor;
    } else if (delta.kind === "events") {
      const from = this.cursor as number;
      expect(delta.events).toEqual(this.events.slice(from, from + delta.events.length));
      this.cursor = from + delta.events.length;
      expect(delta.cursor).toBe(this.cursor);
    }
  }

  read(): void {
    this.#release?.();
  }

  leave(): void {
    this.#follower?.dispose();
    this.#follower = null;
    this.#release?.();
  }
}

const actions = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("steps" as const), count: fc.integer({ min: 1, max: 40 }) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("crash" as const), count: fc.constant(1) }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("look" as const), count: fc.constant(1) }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("read" as const), count: fc.integer({ min: 0, max: 2 }) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("rejoin" as const), count: fc.integer({ min: 0, max: 2 }) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const), count: fc.constant(1) }) },
  ),
  { minLength: 5, maxLength: 40 },
);

const settle = () => new Promise((resolve) => setImmediate(resolve));

test("every follower gets exactly the journal's events, however slow, wherever files are turned over, whoever is killed", async () => {
  await fc.assert(
    fc.asyncProperty(actions, fc.integer({ min: 300, max: 20_000 }), async (script, bytes) => {
      const folder = mkdtempSync(join(tmpdir(), "rollscope-follow-"));
      const coordinator = new Coordinator(folder, bytes);
      let run = new KnownRun(folder, systemClock);
      await run.refresh();
      let clients = [0, 1, 2].map(() => new Client(run, coordinator.events));
      try {
        for (const client of clients) client.join();
        for (const action of script) {
          if (action.do === "steps") for (let count = 0; count < action.count; count++) coordinator.step();
          else if (action.do === "crash") coordinator.crash();
          else if (action.do === "look") await run.refresh();
          else if (action.do === "read") clients[action.count]?.read();
          else if (action.do === "rejoin") {
            clients[action.count]?.leave();
            clients[action.count]?.join();
          } else {
            // The daemon is killed; its clients come back to the next one with the cursors they have.
            for (const client of clients) client.leave();
            await run.dispose();
            run = new KnownRun(folder, systemClock);
            await run.refresh();
            const cursors = clients.map(({ cursor }) => cursor);
            clients = cursors.map((cursor) => Object.assign(new Client(run, coordinator.events), { cursor }));
            for (const client of clients) client.join();
          }
          await settle();
        }
        await run.refresh();
        for (let turn = 0; turn < 200 && clients.some(({ cursor }) => cursor !== coordinator.events.length); turn++) {
          for (const client of clients) client.read();
          await settle();
        }
        expect(clients.map(({ cursor }) => cursor)).toEqual(clients.map(() => coordinator.events.length));
        // Numbers that a resume made void are told apart, none is lost.
        const steps = coordinator.events.filter(({ type }) => type === "step");
        expect(run.metrics.attempts().reduce((sum, { steps: own }) => sum + own.length, 0)).toBe(steps.length);
      } finally {
        for (const client of clients) client.leave();
        await run.dispose();
        coordinator.dispose();
        rmSync(folder, { recursive: true, force: true });
      }
    }),
    { numRuns: 40 },
  );
});

test("a client that falls far behind gets a snapshot instead of a queue", async () => {
  const folder = runFolder();
  const coordinator = new Coordinator(folder, 1_000_000);
  onTestFinished(() => coordinator.dispose());
  const run = new KnownRun(folder, systemClock);
  onTestFinished(() => run.dispose());
  await run.refresh();
  const kinds: string[] = [];
  let release = () => {};
  const follower = followRun(
    run,
    {
      notify: (_, delta) => {
        kinds.push((delta as RunDelta).kind);
        return new Promise((resolve) => {
          release = resolve;
        });
      },
    },
    null,
  );
  for (let step = 0; step < 2000; step++) coordinator.step();
  await run.refresh();
  release();
  await settle();
  expect(kinds).toEqual(["snapshot", "snapshot"]);
  follower.dispose();
});

test("the disk that a journal takes is bounded: old steps are thinned out, newest ones and the begin are kept", () => {
  const folder = runFolder();
  const file = join(folder, "journal.jsonl");
  const journal = openJournal(file, 1, () => 1, { fileBytes: 20_000, snapshotBytes: 400_000 });
  journal.append(started(0, 1));
  for (let step = 1; step <= 12_000; step++) journal.append(stepOf(step));
  journal.dispose();
  const sizes = ["journal.jsonl", "journal.1.jsonl", "journal.snapshot.jsonl"].map(
    (name) => statSync(join(folder, name)).size,
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(450_000);
  const snapshot = readFileSync(join(folder, "journal.snapshot.jsonl"), "utf8").split("\n");
  expect(snapshot[1]).toContain('"type":"started"');
});

test("a line in the middle that cannot be read makes followers begin again, and costs one event only", async () => {
  const folder = runFolder();
  const coordinator = new Coordinator(folder, 1_000_000);
  for (let step = 0; step < 10; step++) coordinator.step();
  coordinator.dispose();
  const file = join(folder, "journal.jsonl");
  const lines = readFileSync(file, "utf8").split("\n");
  lines[6] = "not a line of a journal";
  truncateSync(file);
  appendFileSync(file, lines.join("\n"));
  const run = new KnownRun(folder, systemClock);
  onTestFinished(() => run.dispose());
  await run.refresh();
  expect(run.eventsAfter(5, 100)).toBeNull();
  expect(run.eventsAfter(7, 100)).toHaveLength(coordinator.events.length - 7);
  expect(run.snapshot().cursor).toBe(coordinator.events.length);
});
