// What the scheduler needs of a captured conversation: an agent to hand to the recipe, news of its calls for the time-outs,
// and, once it is over, what was said. How tokens are captured is the business of capture.
import type { Agent, CallView, Task, ToolEventView } from "../../../protocol/agent.ts";
import type { RecordStats } from "../../../protocol/record.ts";

/** How the calls of a rollout are sampled. */
export interface SamplingSettings {
  readonly maxNewTokens: number;
  readonly maxTurns: number | null;
  /** 0 = greedy. */
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly stop: readonly string[];
}

export interface SessionRequest {
  /** Id of the record that the session fills. */
  readonly record: string;
  readonly task: Task;
  readonly settings: SamplingSettings;
  /** Names the record's random streams: the same for the same task and sample, whichever run or attempt it is. */
  readonly streamKey: string;
  /** Aborted when the rollout is over, whatever ended it. */
  readonly signal: AbortSignal;
  readonly onCall: (moment: "begun" | "ended") => void;
}

/** What a closed session tells about itself. */
export interface SessionReport {
  readonly calls: readonly CallView[];
  readonly toolEvents: readonly ToolEventView[];
  readonly stats: RecordStats;
  readonly policyVersions: { readonly min: number; readonly max: number } | null;
}

/** `Trajectories` is whatever training wants to be handed; the scheduler passes it on unseen. */
export interface RolloutSession<Trajectories> {
  readonly agent: Agent;
  /** Ends the session: calls in flight are aborted and kept as partial, later ones are refused. */
  close(): Promise<SessionReport>;
  trajectories(): Trajectories;
}

export type OpenSession<Trajectories> = (
  request: SessionRequest,
) => RolloutSession<Trajectories> | Promise<RolloutSession<Trajectories>>;
