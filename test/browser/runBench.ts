// Runs with generated numbers for the dashboard's tests, folded and bucketed by the daemon's own code.
import { MetricTable } from "../../agent-daemon/src/daemon/runs/metricTable.ts";
import { RunFold } from "../../agent-daemon/src/daemon/runs/runFold.ts";
import { seriesContent } from "../../agent-daemon/src/daemon/runs/seriesBuckets.ts";
import type { Advisory } from "../../protocol/advisory.ts";
import type { DaemonMethod, DaemonRequest } from "../../protocol/daemonMethods.ts";
import type { JournalEvent, JournalEventBody } from "../../protocol/journal.ts";
import type { CrashReport, RunSnapshot, RunStatus, RunSummary, Waterfall } from "../../protocol/runView.ts";
import type { TrajectoryRow } from "../../protocol/trajectoryView.ts";
import { type BenchHandler, BenchRefusal, type BenchSession, type PageBench, startPageBench } from "./pageBench.ts";

/** A repeatable sequence in [0, 1). */
export function noise(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export class BenchRun {
  readonly folder: string;
  readonly events: JournalEvent[] = [];
  readonly #fold = new RunFold();
  readonly #table = new MetricTable();
  readonly #followers = new Set<BenchSession>();
  status: RunStatus = "running";
  advisories: Advisory[] = [];
  crash: CrashReport | null = null;
  recipe = "gsm8k-grpo";
  log = "";
  /** Events before this one are forgotten: who asks for older ones gets a snapshot. */
  keepsFrom = 0;

  constructor(folder: string) {
    this.folder = folder;
  }

  add(body: JournalEventBody, attempt = this.#fold.attempt || 1): JournalEvent {
    const event = {
      n: this.events.length + 1,
      at: 1_790_000_000_000 + this.events.length * 1000,
      attempt,
      ...body,
    } as JournalEvent;
    this.events.push(event);
    this.#fold.read(event);
    if (event.type === "step") this.#table.add(event);
    return event;
  }

  start(steps: number, from: { step: number } | null = null): void {
    const attempt = this.#fold.attempt + 1;
    const resumed = from === null ? null : { step: from.step, checkpoint: `step-${from.step}`, voidedSteps: 5 };
    this.add(
      {
        type: "started",
        run: "run-1",
        recipe: this.recipe,
        model: "smollm2-135m-instruct",
        steps,
        seed: 1,
        evaluations: [0],
        resumed,
      },
      attempt,
    );
    this.add({ type: "phase", step: from?.step ?? 0, phase: "sampling" }, attempt);
  }

  step(step: number, metrics: Record<string, number>, timings: Record<string, number> = {}): JournalEvent {
    return this.add({ type: "step", step, weightVersion: step, skipped: null, metrics, timings });
  }

  evaluate(step: number, score: number): JournalEvent {
    const counts = { tasks: 120, graded: 120, ungraded: 0, failed: 0, truncated: 0 };
    return this.add({ type: "evaluation", step, summary: { ...counts, scores: { score } }, milliseconds: 1000 });
  }

  summary(): RunSummary {
    const fold = this.#fold;
    return {
      folder: this.folder,
      run: "run-1",
      recipe: this.recipe,
      recipeFolder: null,
      model: fold.model,
      status: this.status,
      phase: fold.phase,
      attempt: fold.attempt,
      step: fold.step,
      steps: fold.steps,
      reward: fold.reward,
      loss: fold.loss,
      evaluation: fold.evaluation(),
      begun: fold.begun,
      ended: null,
      pid: 1,
      error: null,
      crash: this.crash,
      advisories: this.advisories,
    };
  }

  snapshot(): RunSnapshot {
    const disk = { checkpoints: 1.6e9, store: 4.1e7, blobs: 3.2e6 };
    return { summary: this.summary(), ...this.#fold.snapshotParts(), metricNames: [...this.#table.names()], disk };
  }

  follow(session: BenchSession, cursor: number | null): void {
    this.#followers.add(session);
    if (cursor === null || cursor < this.keepsFrom) {
      session.notify("run/delta", { kind: "snapshot", folder: this.folder, snapshot: this.snapshot() });
    } else this.#send(session, cursor);
  }

  /** Sends what was added since. */
  publish(from: number): void {
    for (const session of this.#followers) this.#send(session, from);
  }

  #send(session: BenchSession, cursor: number): void {
    const events = this.events.slice(cursor);
    if (events.length === 0) return;
    session.notify("run/delta", {
      kind: "events",
      folder: this.folder,
      cursor: this.events.length,
      events,
      summary: this.summary(),
    });
  }

  series(request: DaemonRequest<"metrics/series">) {
    return seriesContent(this.#table, this.#fold, request);
  }

  leave(session: BenchSession): void {
    this.#followers.delete(session);
  }
}

/** Curves as a good run has them. */
export function goodMetrics(step: number, random: () => number): Record<string, number> {
  const progress = 1 - Math.exp(-step / 60);
  const shake = (size: number) => (random() - 0.5) * size;
  return {
    loss: 0.06 - 0.05 * progress + shake(0.02),
    policy_loss: 0.05 - 0.045 * progress + shake(0.02),
    kl_k3: 0.012 * progress + Math.abs(shake(0.004)),
    entropy: 1.4 - 0.7 * progress + shake(0.06),
    grad_norm: 0.8 + shake(0.35) + 0.4 * (1 - progress),
    reward_mean: 0.12 + 0.75 * progress + shake(0.08),
    staleness_mean: Math.abs(shake(0.3)),
    staleness_max: random() > 0.7 ? 1 : 0,
    tokens_sampled: Math.round(5200 - 1800 * progress + shake(700)),
    tokens_trainable: Math.round(4300 - 1500 * progress + shake(600)),
    mismatch_k3: 2e-6 + Math.abs(shake(2e-6)),
    clip_fraction: 0.02 + Math.abs(shake(0.01)),
  };
}

export function goodTimings(random: () => number): Record<string, number> {
  return {
    time_step: 4000 + random() * 900,
    tokens_per_second: 980 + random() * 120,
    flat_tokens_per_second: 1250 + random() * 160,
  };
}

export function goodRun(folder: string, steps: number, seed = 7): BenchRun {
  const run = new BenchRun(folder);
  const random = noise(seed);
  run.start(steps + 40);
  run.evaluate(0, 0.117);
  for (let step = 1; step <= steps; step++) {
    run.step(step, goodMetrics(step, random), goodTimings(random));
    if (step % 20 === 0) {
      run.evaluate(step, 0.117 + 0.79 * (1 - Math.exp(-step / 55)));
      run.add({ type: "checkpoint", step, checkpoint: `step-${String(step).padStart(5, "0")}`, milliseconds: 900 });
    }
  }
  run.log = `\x1b[32mready\x1b[0m in 2.1 s\nsampling 10%\rsampling 55%\rsampling 100%\nstep 1 reward 0.14\n`;
  return run;
}

function rowsOf(folder: string, step: number): TrajectoryRow[] {
  const random = noise(step + 1);
  return Array.from({ length: 32 }, (_, index) => ({
    source: { kind: "record", folder, record: `rec-${step}-${index}` },
    id: `rec-${step}-${index}`,
    task: `task-${index >> 3}`,
    taskName: `gsm8k/train/${4100 + (index >> 3)}`,
    group: `group-${index >> 3}`,
    sample: index % 8,
    attempt: 1,
    split: "train",
    status: "graded",
    score: random() > 0.4 ? 1 : 0,
    turns: 2,
    promptTokens: 140,
    outputTokens: 90 + Math.round(random() * 160),
    truncated: random() > 0.93,
    toolErrors: 0,
    driftedCalls: random() > 0.95 ? 1 : 0,
    staleness: 0,
    mismatch: random() * 4e-6,
    steps: [step],
    error: null,
    labels: [],
  }));
}

function waterfallOf(step: number | null): Waterfall {
  const random = noise((step ?? 0) + 3);
  const stages = {
    notCaptured: 0,
    masked: Math.round(120 + random() * 60),
    truncated: Math.round(random() * 240),
    stale: step === null || step % 7 === 0 ? 180 : 0,
    zeroVariance: Math.round(900 + random() * 900),
    filtered: Math.round(random() * 90),
    clipped: Math.round(40 + random() * 80),
    contributing: Math.round(2600 + random() * 700),
  };
  return { step, sampled: Object.values(stages).reduce((sum, value) => sum + value, 0), stages };
}

export async function startRunBench(
  runs: readonly BenchRun[],
  {
    shown = [runs[0]!.folder],
    view = {},
    locale = "en",
  }: { shown?: string[]; view?: Record<string, unknown>; locale?: string } = {},
): Promise<PageBench> {
  const find = (folder: string) => {
    const run = runs.find((one) => one.folder === folder);
    if (run === undefined) throw new BenchRefusal("RUN_NOT_FOUND", `No run lies in ${folder}.`, "Choose another run.");
    return run;
  };
  const answer = <M extends DaemonMethod>(
    _: M,
    handler: (params: DaemonRequest<M>, session: BenchSession) => unknown,
  ) => handler as BenchHandler;
  const handlers: Record<string, BenchHandler> = {
    "run/follow": answer("run/follow", ({ folder, cursor }, session) => {
      find(folder).follow(session, cursor);
      return {};
    }),
    "run/unfollow": answer("run/unfollow", ({ folder }, session) => {
      find(folder).leave(session);
      return {};
    }),
    "metrics/series": answer("metrics/series", (params, session) =>
      session.bulk(find(params.folder).series({ ...params, after: params.after ?? null })),
    ),
    "trajectories/ofStep": answer("trajectories/ofStep", ({ folder, step }) => ({ rows: rowsOf(folder, step) })),
    "run/waterfall": answer("run/waterfall", ({ step }) => waterfallOf(step)),
    "run/log": answer("run/log", ({ folder }) => ({ text: find(folder).log, truncated: false })),
    "run/config": answer("run/config", () => ({
      values: [
        { key: "training.steps", value: 160, origin: "recipe.yaml" },
        { key: "training.learningRate", value: 0.00001, origin: "profile fast" },
        { key: "sampling.groupSize", value: 8, origin: "default" },
        { key: "objective.kind", value: "grpo", origin: "recipe.yaml" },
      ],
      environments: [{ attempt: 1, environment: { node: "20.19.5", cpus: 2 } }],
    })),
    "run/explainZeroLoss": answer("run/explainZeroLoss", ({ step }) => ({
      step,
      answer: `The loss of step ${step} is not zero.`,
      causes: [],
    })),
    "run/stop": answer("run/stop", ({ folder }) => find(folder).summary()),
    "run/pause": answer("run/pause", ({ folder }) => find(folder).summary()),
    "run/continue": answer("run/continue", ({ folder }) => find(folder).summary()),
    "run/resume": answer("run/resume", ({ folder }) => ({ summary: find(folder).summary(), debug: null })),
    "host/openTrajectory": () => ({}),
    "host/openStep": () => ({}),
    "host/follow": () => ({}),
    "host/copy": () => ({}),
    "host/pickRuns": () => ({ folders: runs.map((run) => run.folder) }),
  };
  return await startPageBench("dashboard", { page: "dashboard", folders: shown, view }, handlers, locale);
}
