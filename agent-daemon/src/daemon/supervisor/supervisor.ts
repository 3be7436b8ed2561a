// Starts processes of runs. Filled in below.
import type { DaemonRequest, DaemonResult } from "../../../../protocol/daemonMethods.ts";
import type { KnownRun } from "../runs/knownRun.ts";

export interface Supervisor {
  start(request: DaemonRequest<"run/start">, signal: AbortSignal): Promise<DaemonResult<"run/start">>;
  resume(run: KnownRun, debug: boolean, signal: AbortSignal): Promise<DaemonResult<"run/resume">>;
  dispose(): void;
}
export function createSupervisor(_: unknown): Supervisor {
  return {
    start: async () => {
      throw new Error("x");
    },
    resume: async () => {
      throw new Error("x");
    },
    dispose() {},
  };
}
