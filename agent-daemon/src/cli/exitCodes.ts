// The exit codes of `rollscope`, in one table: scripts rely on them, and the help text prints them from here.
import type { ErrorCode } from "../../../protocol/errors.ts";
import type { EndStatus } from "../../../protocol/journal.ts";

export const exitCodes = {
  ok: { code: 0, meaning: "done; a run reached its last step" },
  failed: { code: 1, meaning: "a run, or the command itself, failed; the message names a code and what to do" },
  usage: { code: 2, meaning: "the command line is wrong: unknown command, option or argument" },
  config: { code: 3, meaning: "the recipe or its configuration has problems; nothing was started" },
  notFound: { code: 4, meaning: "no such run, record, recipe, model or data" },
  notActive: { code: 5, meaning: "the run is not in a state that allows this (not running, already running)" },
  stopped: { code: 130, meaning: "stopped by the user; `rollscope resume` goes on" },
} as const;

export type ExitName = keyof typeof exitCodes;

const notFound: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "RUN_NOT_FOUND",
  "RUN_AMBIGUOUS",
  "RECORD_NOT_FOUND",
  "RECIPE_NOT_FOUND",
  "MODEL_NOT_FOUND",
  "MODEL_SOURCE_UNKNOWN",
  "DATA_FILE_NOT_FOUND",
]);
const notActive: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["RUN_ACTIVE", "RUN_NOT_ACTIVE", "RUN_NOT_RESUMABLE"]);

/** Named like problems of the configuration, but met only by a step of a run that had begun. */
const metByAStep: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "OBJECTIVE_DEFINITION_INVALID",
  "OBJECTIVE_COLUMN_MISSING",
  "OBJECTIVE_COLUMN_INVALID",
  "OBJECTIVE_STATISTICS_MISSING",
  "OBJECTIVE_OCCURRENCES_WRONG",
  "ADVANTAGES_COLUMN_MISSING",
]);

/** The exit of a command that ended with this error. */
export function exitOfError(code: ErrorCode | null): ExitName {
  if (code === null) return "failed";
  if (code === "COMMAND_INVALID") return "usage";
  if (code === "RUN_STOPPED") return "stopped";
  if (notFound.has(code)) return "notFound";
  if (notActive.has(code)) return "notActive";
  if (metByAStep.has(code)) return "failed";
  return /^(CONFIG|RECIPE|OBJECTIVE|ADVANTAGES)_/.test(code) ? "config" : "failed";
}

export function exitOfRun(status: EndStatus): ExitName {
  switch (status) {
    case "completed":
      return "ok";
    case "stopped":
      return "stopped";
    case "failed":
      return "failed";
  }
}

/** Lines for the end of the help text. */
export function describeExitCodes(): string {
  const lines = Object.values(exitCodes).map(({ code, meaning }) => `  ${String(code).padStart(3)}  ${meaning}`);
  return ["Exit codes:", ...lines].join("\n");
}
