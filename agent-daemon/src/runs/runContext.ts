// What a run consists of while it is going: its parts, opened once and closed in reverse order by whoever opened them, and
// the one place where it tells what happens.
import type { Task } from "../../../protocol/agent.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { JournalError, JournalEvent, JournalEventBody, RunPhase } from "../../../protocol/journal.ts";
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import type { RecipeDefinition } from "../../../protocol/recipeDefinition.ts";
import type { CapturedTrajectory } from "../capture/trajectories.ts";
import type { InferenceEngine, TrainingEngine } from "../engines/interface.ts";
import type { RecipeTasks } from "../recipes/loadTasks.ts";
import type { Clock } from "../sampling/clock.ts";
import type { OpenSession } from "../sampling/session.ts";
import type { BlobStore, RecordStore } from "../store/interface.ts";
import type { Journal } from "./journal.ts";
import type { RunFolder } from "./runFolder.ts";
import type { StopSwitch } from "./stopSwitch.ts";

/** How far a phase is; journalled nowhere. */
export interface PhaseProgress {
  readonly done: number;
  readonly total: number;
  readonly unit: "rollouts" | "tokens";
}

/** Whoever watches a run in its own process. */
export interface RunObserver {
  event(event: JournalEvent): void;
  /** null when a phase says nothing about its progress. */
  progress(progress: PhaseProgress | null): void;
}

export interface RunEngines {
  readonly training: TrainingEngine;
  readonly inference: InferenceEngine;
  dispose(): Promise<void>;
}

export interface RunContext {
  readonly folder: RunFolder;
  readonly attempt: number;
  readonly config: RecipeConfig;
  readonly definition: RecipeDefinition;
  readonly tasks: RecipeTasks;
  readonly engines: RunEngines;
  readonly store: RecordStore;
  readonly blobs: BlobStore;
  readonly openSession: OpenSession<readonly CapturedTrajectory[]>;
  readonly stops: StopSwitch;
  readonly clock: Clock;
  readonly report: RunReport;
}

/** Tells what happens: to the journal, the observer and whoever asks for the state. */
export interface RunReport {
  readonly phase: RunPhase;
  readonly step: number;
  event(body: JournalEventBody): void;
  enter(phase: RunPhase, step: number): void;
  warn(error: unknown, step: number | null): void;
  progress(progress: PhaseProgress | null): void;
}

export function createReport(journal: Journal, observer: RunObserver, step: number): RunReport {
  const state = { phase: "opening" as RunPhase, step };
  const event = (body: JournalEventBody) => observer.event(journal.append(body));
  return {
    get phase() {
      return state.phase;
    },
    get step() {
      return state.step;
    },
    event(body) {
      if (body.type === "step") state.step = body.step;
      if (body.type === "started") state.step = body.resumed?.step ?? 0;
      event(body);
    },
    enter(phase, at) {
      observer.progress(null);
      if (state.phase === phase) return;
      state.phase = phase;
      event({ type: "phase", step: at, phase });
    },
    warn: (error, at) => event({ type: "warning", step: at, error: journalError(error) }),
    progress: (progress) => observer.progress(progress),
  };
}

export function journalError(error: unknown): JournalError {
  if (!(error instanceof RollscopeError)) {
    const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { code: "RUN_FAILED", message, next: "This is a fault of Rollscope; report it with the run's journal." };
  }
  const { record, call } = error.at;
  return {
    code: error.code,
    message: error.message,
    next: error.next,
    ...(typeof record === "string" ? { record } : {}),
    ...(typeof call === "string" ? { call } : {}),
  };
}

/** Tasks of the held-out split that are evaluated. */
export function evaluatedTasks({ tasks, config }: Pick<RunContext, "tasks" | "config">): readonly Task[] {
  return config.evaluation.tasks === null ? tasks.heldOut : tasks.heldOut.slice(0, config.evaluation.tasks);
}
