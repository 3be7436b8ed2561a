// What went wrong, in the shape that every message of the extension has: code, sentence, next action. Errors of the daemon, of the
// wire and of this process all become one; text of unknown errors is kept, never matched.
import { ResponseError } from "vscode-jsonrpc/node";
import { rpcErrorDataSchema } from "../../protocol/daemonMethods.ts";
import { type ErrorCode, RollscopeError } from "../../protocol/errors.ts";

export interface Fault {
  /** Of errorCodes, or what a newer daemon calls it. */
  readonly code: string;
  readonly message: string;
  readonly next: string;
  readonly retryable: boolean;
}

/** Carries a fault through a rejected promise. */
export class FaultError extends Error {
  readonly fault: Fault;

  constructor(fault: Fault) {
    super(fault.message);
    this.name = "FaultError";
    this.fault = fault;
  }
}

export function asFault(error: unknown): Fault {
  if (error instanceof FaultError) return error.fault;
  if (error instanceof RollscopeError) {
    return { code: error.code, message: error.message, next: error.next, retryable: error.retryable };
  }
  if (error instanceof ResponseError) {
    const data = rpcErrorDataSchema.safeParse(error.data);
    if (data.success) {
      const { code, message, next, retryable } = data.data;
      return { code, message, next, retryable };
    }
  }
  return {
    code: "EXTENSION_FAILED",
    message: error instanceof Error ? error.message : String(error),
    next: "Run Rollscope: Show Daemon Log, and report the last lines.",
    retryable: false,
  };
}

/** For faults that this extension finds itself: a code of the table, so that docs/ERRORS.md explains it. */
export function refuse(code: ErrorCode, message: string, next: string): never {
  throw new RollscopeError(code, message, { next });
}

export function isCancelled(error: unknown): boolean {
  return error instanceof Error && error.name === "CancelledError";
}

export class CancelledError extends Error {
  constructor() {
    super("Cancelled.");
    this.name = "CancelledError";
  }
}
