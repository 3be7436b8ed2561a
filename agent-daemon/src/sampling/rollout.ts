// One try of one trajectory: opens its session, runs the recipe's rollout and evaluate under their time-outs, and turns
// every way this can end into an outcome. Nothing that a recipe does escapes from here as an exception.
import type { Evaluate, RecordView, Rollout, Task } from "../../../protocol/agent.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { DocumentError } from "../../../protocol/record.ts";
import type { Clock } from "./clock.ts";
import { linkedAbort } from "./linkedAbort.ts";
import { type RolloutLimits, runEvaluate, watchRollout } from "./rolloutTimeouts.ts";
import { type ReadScore, readScore } from "./scoreOf.ts";
import type { OpenSession, RolloutSession, SamplingSettings, SessionReport } from "./session.ts";

export interface RecipeCode {
  readonly rollout: Rollout;
  readonly evaluate: Evaluate;
}

export interface RolloutRequest {
  readonly record: string;
  readonly streamKey: string;
  readonly task: Task;
  readonly settings: SamplingSettings;
  readonly limits: RolloutLimits;
  /** Aborted with a RollscopeError as its reason when the record is no longer wanted. */
  readonly cancel: AbortSignal;
  /** Called once when rollout is over and evaluate begins. */
  readonly onScoring?: (report: SessionReport) => void | Promise<void>;
}

interface OutcomeBase<Trajectories> {
  readonly session: RolloutSession<Trajectories> | null;
  readonly report: SessionReport | null;
}

export type RolloutOutcome<Trajectories> = OutcomeBase<Trajectories> &
  (
    | { readonly kind: "scored"; readonly score: ReadScore }
    | { readonly kind: "failed"; readonly error: DocumentError; readonly retry: boolean }
    | { readonly kind: "cancelled"; readonly error: DocumentError }
  );

export interface RolloutCollaborators<Trajectories> {
  readonly recipe: RecipeCode;
  readonly openSession: OpenSession<Trajectories>;
  readonly clock: Clock;
}

/** Runs one rollout and its evaluation. Never rejects. */
export async function runRollout<Trajectories>(
  request: RolloutRequest,
  { recipe, openSession, clock }: RolloutCollaborators<Trajectories>,
): Promise<RolloutOutcome<Trajectories>> {
  const over = linkedAbort(request.cancel);
  const watch = watchRollout(request.limits, clock, request.cancel);
  let session: RolloutSession<Trajectories> | null = null;
  try {
    const ended = await watch.run(async () => {
      const opened = await openSession({
        record: request.record,
        task: request.task,
        settings: request.settings,
        streamKey: request.streamKey,
        signal: over.signal,
        onCall: watch.onCall,
      });
      if (over.signal.aborted) {
        await opened.close();
        throw over.signal.reason;
      }
      session = opened;
      return await recipe.rollout(request.task, opened.agent);
    });
    over.abort(ended.kind === "returned" || ended.kind === "threw" ? endedReason() : ended.error);
    const opened = session as RolloutSession<Trajectories> | null;
    const report = opened === null ? null : await opened.close();
    const base = { session: opened, report };
    if (ended.kind === "cancelled") return { ...base, kind: "cancelled", error: documentError(ended.error) };
    if (ended.kind === "overran") return { ...base, kind: "failed", error: documentError(ended.error), retry: true };
    if (ended.kind === "threw" || report === null) {
      const thrown = ended.kind === "threw" ? ended.error : new Error("the session was never opened");
      return {
        ...base,
        kind: "failed",
        error: describeThrown(thrown, "SAMPLING_ROLLOUT_FAILED", "rollout"),
        retry: true,
      };
    }
    await request.onScoring?.(report);
    return { ...base, ...(await grade(request, recipe.evaluate, viewOf(request, report, ended.value), clock)) };
  } catch (error) {
    return {
      session,
      report: null,
      kind: "failed",
      error: describeThrown(error, "SAMPLING_ROLLOUT_FAILED", "rollout"),
      retry: true,
    };
  } finally {
    over.dispose();
  }
}

async function grade(request: RolloutRequest, evaluate: Evaluate, view: RecordView, clock: Clock) {
  const ended = await runEvaluate(() => evaluate(view), request.limits, clock, request.cancel);
  switch (ended.kind) {
    case "returned":
      try {
        return { kind: "scored", score: readScore(ended.value) } as const;
      } catch (error) {
        return {
          kind: "failed",
          error: describeThrown(error, "SAMPLING_SCORE_INVALID", "evaluate"),
          retry: false,
        } as const;
      }
    case "threw":
      return {
        kind: "failed",
        error: describeThrown(ended.error, "SAMPLING_EVALUATE_FAILED", "evaluate"),
        retry: false,
      } as const;
    case "overran":
      return { kind: "failed", error: documentError(ended.error), retry: false } as const;
    case "cancelled":
      return { kind: "cancelled", error: documentError(ended.error) } as const;
  }
}

function viewOf(request: RolloutRequest, report: SessionReport, result: unknown): RecordView {
  return {
    id: request.record,
    task: request.task,
    calls: report.calls,
    toolEvents: report.toolEvents,
    text: report.calls.at(-1)?.text ?? "",
    truncated: report.stats.truncated,
    result,
  };
}

/** Why agent.signal aborts after a rollout that ended by itself: whatever it left running should stop. */
function endedReason(): RollscopeError {
  return new RollscopeError("SAMPLING_CANCELLED", "The rollout is over.", {
    next: "Wait for everything that rollout started before it returns.",
  });
}

function documentError(error: RollscopeError): DocumentError {
  const call = error.at["call"];
  return {
    code: error.code,
    message: `${error.message} ${error.next}`,
    call: call === undefined ? null : String(call),
  };
}

function describeThrown(
  thrown: unknown,
  code: "SAMPLING_ROLLOUT_FAILED" | "SAMPLING_EVALUATE_FAILED" | "SAMPLING_SCORE_INVALID",
  what: string,
): DocumentError {
  if (thrown instanceof RollscopeError) return documentError(thrown);
  const message = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
  return { code, message: `${what} threw ${message}`, call: null };
}
