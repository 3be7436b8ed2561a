// Why a run's process ended without saying so, in words: from the report that the helper wrote into the run's folder, or, where no
// helper watched it, from what is known without one.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { plainTerminalText } from "../../../../protocol/plainTerminalText.ts";
import type { CrashReport } from "../../../../protocol/runView.ts";
import type { RunFolder } from "../../runs/runFolder.ts";
import { isSameProcess } from "../server/processIdentity.ts";

/** exit.json, as native/helper/main.cpp writes it. */
export const exitReportSchema = z.object({
  pid: z.int(),
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  stderrTail: z.string(),
  memory: z.object({
    peak: z.number().nullable(),
    available: z.number().nullable(),
    killedForMemory: z.boolean().nullable(),
  }),
  /** Processes that the run had left and that were ended. */
  ended: z.int().min(0),
  at: z.number(),
});
export type ExitReport = z.infer<typeof exitReportSchema>;

export const exitReportFile = (folder: Pick<RunFolder, "path">) => join(folder.path, "exit.json");

export function readExitReport(folder: Pick<RunFolder, "path">): ExitReport | null {
  try {
    return exitReportSchema.parse(JSON.parse(readFileSync(exitReportFile(folder), "utf8")));
  } catch {
    return null;
  }
}

/** process.json, as the helper writes it when it has started a run. */
const startedProcessSchema = z.object({
  pid: z.int().min(1),
  start: z.string(),
  attempt: z.int().min(1),
  helper: z.int().min(1),
  helperStart: z.string(),
});

export function readStartedProcess(folder: Pick<RunFolder, "path">): z.infer<typeof startedProcessSchema> | null {
  try {
    return startedProcessSchema.parse(JSON.parse(readFileSync(join(folder.path, "process.json"), "utf8")));
  } catch {
    return null;
  }
}

/** Whether a helper is still ending what a process left, and has yet to write down how that process ended. */
export function isBeingReported(folder: Pick<RunFolder, "path">, pid: number): boolean {
  const started = readStartedProcess(folder);
  if (started === null || started.pid !== pid || readExitReport(folder)?.pid === pid) return false;
  return isSameProcess(started.helper, started.helperStart);
}

const resume = "`rollscope resume` goes on from the last whole checkpoint; everything that was written is intact.";

/**
 * @param lastEvent time of the journal's last event: a report from before it is about an earlier attempt
 * @param goneAt when a process without a helper was missed; null: it was never seen
 */
export function crashReportOf(
  folder: RunFolder,
  lastEvent: number | null,
  goneAt: number | null = null,
): CrashReport | null {
  const report = readExitReport(folder);
  const started = readStartedProcess(folder);
  const isOfLast = report !== null && (started === null || started.pid === report.pid);
  if (isOfLast && report.at >= (lastEvent ?? 0)) {
    const { exitCode, signal, stderrTail, memory, at } = report;
    return { exitCode, signal, stderrTail: wholeLines(stderrTail), memory, at, ...wordsFor(report) };
  }
  if (goneAt === null) return null;
  return {
    exitCode: null,
    signal: null,
    stderrTail: "",
    memory: { peak: null, available: null, killedForMemory: null },
    message: "The process of the run is gone and did not say why; it was not started by the daemon.",
    next: `Look into the terminal that it ran in. ${resume}`,
    at: goneAt,
  };
}

/** What the helper keeps of the error output, in bytes. */
const keptTail = 16_384;

/** As text; where the helper cut it, from its first whole line on. */
function wholeLines(tail: string): string {
  const isCut = Buffer.byteLength(tail) >= keptTail;
  return plainTerminalText(isCut ? tail.slice(tail.indexOf("\n") + 1) : tail);
}

const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;

function wordsFor({ exitCode, signal, memory, stderrTail }: ExitReport): Pick<CrashReport, "message" | "next"> {
  const peak = memory.peak === null ? "" : ` It had ${mebibytes(memory.peak)} at most.`;
  if (memory.killedForMemory === true)
    return {
      message: `The system ended the run's process because memory ran out.${peak}`,
      next: `Lower training.tokenBudget, take a smaller model or free memory. ${resume}`,
    };
  if (stderrTail.includes("JavaScript heap out of memory"))
    return {
      message: `The run's JavaScript ran out of its heap.${peak}`,
      next: `Keep less in the recipe's own variables, or set NODE_OPTIONS=--max-old-space-size. ${resume}`,
    };
  if (signal === "SIGKILL")
    return {
      message: `The run's process was ended with SIGKILL.${peak}`,
      next: `Somebody, or the system for want of memory, did that. ${resume}`,
    };
  if (signal === "SIGSEGV" || signal === "SIGBUS" || signal === "SIGABRT" || signal === "SIGILL")
    return {
      message: `The run's process crashed with ${signal}: a fault of native code.${peak}`,
      next: `Report it with the last lines of its log. ${resume}`,
    };
  if (signal !== null) return { message: `The run's process was ended by ${signal}.${peak}`, next: resume };
  return {
    message: `The run's process ended with exit code ${exitCode} without writing its end.${peak}`,
    next: `The last lines of its log say why. ${resume}`,
  };
}
