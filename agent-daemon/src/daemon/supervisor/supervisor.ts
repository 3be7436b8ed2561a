// Starts runs as processes of their own, each below a helper that outlives the daemon, and answers once a run has begun or says why
// it has not. It never loads recipe code: the run's process checks the recipe and refuses it.
import { existsSync, readFileSync, rmSync, watch } from "node:fs";
import { dirname, join } from "node:path";
import {
  type DaemonRequest,
  type DaemonResult,
  type DebugTarget,
  debugTargetSchema,
} from "../../../../protocol/daemonMethods.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { plainTerminalText } from "../../../../protocol/plainTerminalText.ts";
import { recipeError } from "../../recipes/checkRecipe.ts";
import { loadConfig } from "../../recipes/loadConfig.ts";
import { readRunEnvironment } from "../../runs/environment.ts";
import { readRecipeFolder } from "../../runs/recipeCopy.ts";
import { createRunFolder, type RunFolder } from "../../runs/runFolder.ts";
import type { Clock } from "../../sampling/clock.ts";
import type { DaemonLog } from "../daemonLog.ts";
import type { ProgramCommand } from "../programCommand.ts";
import type { KnownRun } from "../runs/knownRun.ts";
import type { KnownRuns } from "../runs/knownRuns.ts";
import { readRunLog } from "../runs/runLog.ts";
import { exitReportFile, readExitReport } from "./crashReport.ts";
import { supervise } from "./helper.ts";

export interface Supervisor {
  /** @throws RECIPE_INVALID and the errors of loading it; RUN_START_FAILED; SUPERVISOR_HELPER_MISSING */
  start(request: DaemonRequest<"run/start">, signal: AbortSignal): Promise<DaemonResult<"run/start">>;
  resume(run: KnownRun, debug: boolean, signal: AbortSignal): Promise<DaemonResult<"run/resume">>;
}

export interface SupervisorServices {
  readonly program: ProgramCommand;
  readonly clock: Clock;
  readonly log: DaemonLog;
  readonly runs: KnownRuns;
}

interface Begin {
  readonly attempt: number;
  readonly debug: boolean;
  /** Words behind the program. */
  readonly words: readonly string[];
  readonly cwd: string;
}

export function createSupervisor({ program, clock, log, runs }: SupervisorServices): Supervisor {
  const begin = async (run: KnownRun, how: Begin, signal: AbortSignal): Promise<DebugTarget | null> => {
    const { attempt, debug, words, cwd } = how;
    // An end that an earlier attempt wrote down is not this one's.
    rmSync(exitReportFile(run.folder), { force: true });
    const inspect = debug ? ["--inspect-brk=127.0.0.1:0", "--inspect-publish-uid=stderr"] : [];
    const command = [program.file, ...inspect, ...program.args, ...words];
    return await new Promise<DebugTarget | null>((resolve, reject) => {
      const stop = new AbortController();
      const finish = (settle: () => void) => {
        if (stop.signal.aborted) return;
        stop.abort();
        settle();
      };
      const lookForBegin = () => {
        if (!debug && begunAfter(run.folder, attempt)) finish(() => resolve(null));
      };
      // Before the process is there, so that nothing is missed.
      const watcher = watch(run.path, { persistent: false, signal: stop.signal }, lookForBegin);
      watcher.on("error", () => {});
      signal.addEventListener("abort", () => finish(() => resolve(null)), { signal: stop.signal });
      supervise({ folder: run.path, attempt, debug, command, cwd }, (message) => {
        switch (message.event) {
          case "started":
            run.begun(message.pid, message.start, attempt);
            log.info(`started ${run.path} as process ${message.pid}`);
            lookForBegin();
            return;
          case "debugger":
            finish(() => resolve(targetOf(message.url)));
            return;
          case "failed":
            finish(() => reject(notStarted(run.folder, message.message)));
            return;
          case "ended":
            log.info(`the process of ${run.path} ended`);
            finish(() => (begunAfter(run.folder, attempt) ? resolve(null) : reject(refusal(run.folder))));
            void run.refresh().catch((error) => log.error(`${run.path} cannot be read`, error));
            return;
        }
      });
    });
  };

  return {
    async start(request, signal) {
      const overrides = Object.entries(request.overrides).map(([key, value]) => `--${key}=${value}`);
      const environment = process.env;
      const loaded = await loadConfig(request.recipe, { profile: request.profile, overrides, environment });
      const refused = recipeError(loaded);
      if (refused !== null || loaded.config === null) throw refused ?? new Error("a recipe without a configuration");
      const outputDir = request.outputDir ?? (environment["ROLLSCOPE_OUTPUT_DIR"] || join(loaded.folder, "runs"));
      const folder = createRunFolder(outputDir, loaded.config.name, new Date(clock.now()));
      const run = runs.add(folder.path);
      try {
        const profile = request.profile === null ? [] : [`--profile=${request.profile}`];
        const words = ["run", loaded.folder, `--into=${folder.path}`, ...profile, ...overrides];
        const debug = await begin(
          run,
          { attempt: 1, debug: request.debug, words, cwd: dirname(loaded.folder) },
          signal,
        );
        await run.refresh();
        return { summary: run.summary(), debug };
      } catch (error) {
        await runs.forget(folder.path);
        // Nothing has run in it, so nothing is lost with it.
        if (!existsSync(folder.journal)) rmSync(folder.path, { recursive: true, force: true });
        throw error;
      }
    },
    async resume(run, debug, signal) {
      const { folder } = run;
      if (run.isLive) {
        throw new RollscopeError("RUN_ACTIVE", `The run ${folder.name} is running already.`, {
          next: "Stop it first.",
          at: { run: folder.run },
        });
      }
      const attempt = Math.max(run.fold.attempt, readRunEnvironment(folder)?.attempt ?? 0) + 1;
      const words = ["resume", folder.path];
      const target = await begin(run, { attempt, debug, words, cwd: dirname(readRecipeFolder(folder)) }, signal);
      await run.refresh();
      return { summary: run.summary(), debug: target };
    },
  };
}

/** Whether the attempt's coordinator is there, or has been: it listens before it does anything else. */
function begunAfter(folder: RunFolder, attempt: number): boolean {
  try {
    if ((JSON.parse(readFileSync(folder.control, "utf8")) as { attempt?: number }).attempt === attempt) return true;
  } catch {
    // Not there yet, or gone already.
  }
  // A run that ended at once has removed its address, and has written.
  return attempt === 1 && existsSync(folder.journal) && readExitReport(folder) !== null;
}

function targetOf(url: string): DebugTarget {
  const { hostname, port } = new URL(url);
  return debugTargetSchema.parse({ host: hostname, port: Number(port), url });
}

const shownLog = 4000;
/** What the command line ends with when a recipe has problems. */
const configExit = 3;

/** Why a process ended before its run began: it said so itself. */
function refusal(folder: RunFolder): RollscopeError {
  const report = readExitReport(folder);
  const said = plainTerminalText(readRunLog(folder, shownLog).text).trim();
  if (report?.exitCode === configExit) {
    return new RollscopeError("RECIPE_INVALID", said === "" ? "The recipe has problems." : said, {
      next: "Correct what it names; `rollscope check` lists all problems with file and line.",
    });
  }
  const how =
    report === null
      ? "without a report"
      : report.signal === null
        ? `with exit code ${report.exitCode}`
        : `by ${report.signal}`;
  return notStarted(folder, `the process ended ${how}. ${said}`);
}

function notStarted(folder: RunFolder, why: string): RollscopeError {
  return new RollscopeError("RUN_START_FAILED", `The run did not begin: ${why.trim()}`, {
    next: "Correct what the message names, then start it again.",
    at: { path: folder.path },
  });
}
