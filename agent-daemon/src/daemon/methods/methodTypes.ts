// What a method of the daemon is given and gives back. A module of methods is a function from services to handlers, listed in
// allMethods.ts; parameters arrive parsed, errors are RollscopeErrors, and nothing here knows how a client is connected.
import type { BulkArray } from "../../../../protocol/bulkFrame.ts";
import type {
  DaemonMethod,
  DaemonNotification,
  DaemonRequest,
  DaemonResult,
  NotificationOf,
} from "../../../../protocol/daemonMethods.ts";
import type { Clock } from "../../sampling/clock.ts";
import type { DaemonLog } from "../daemonLog.ts";
import type { ProgramCommand } from "../programCommand.ts";
import type { KnownRuns } from "../runs/knownRuns.ts";
import type { Supervisor } from "../supervisor/supervisor.ts";

/** Arrays and what is small beside them, for one bulk frame. */
export interface BulkContent {
  readonly arrays: ReadonlyMap<string, BulkArray>;
  readonly extra: Readonly<Record<string, unknown>>;
}

/** One client: an editor window, a command, a page in a browser. It ends with its connection. */
export interface MethodSession {
  readonly id: string;
  /**
   * Resolves when the notification has left this process, so that who waits for it never queues more than one; also when the
   * client is gone. Never rejects.
   */
  notify<N extends DaemonNotification>(name: N, params: NotificationOf<N>): Promise<void>;
  /** Sends a frame on the bulk channel; return what it returns as the method's result. */
  bulk(content: BulkContent): { readonly bulk: number };
  /** Calls `run` when the session ends; the returned function forgets it. */
  onEnd(run: () => void): () => void;
}

export interface MethodCall {
  readonly session: MethodSession;
  /** Aborted when the client cancels the request or goes away. */
  readonly signal: AbortSignal;
}

/** Calls a method of the table as a client would: parameters are parsed, errors are thrown. */
export type CallMethod = (method: string, params: unknown, call: MethodCall) => Promise<unknown>;

export interface DaemonServices {
  readonly version: string;
  readonly clock: Clock;
  readonly log: DaemonLog;
  /** Runs that clients look at; `runs.folder(path)` is the RunFolder of one, or throws RUN_NOT_FOUND. */
  readonly runs: KnownRuns;
  readonly supervisor: Supervisor;
  readonly program: ProgramCommand;
  readonly call: CallMethod;
}

export type MethodHandlers = {
  readonly [M in DaemonMethod]?: (request: DaemonRequest<M>, call: MethodCall) => Promise<DaemonResult<M>>;
};

export interface MethodModule {
  readonly handlers: MethodHandlers;
  /** Ends what its methods opened (stores, files). */
  readonly dispose?: () => Promise<void>;
}

export type CreateMethods = (services: DaemonServices) => MethodModule;
