// `rollscope run` and `rollscope resume`: starts an attempt of a run in this process and shows it, live on a terminal, as plain
// lines elsewhere. Ctrl-C stops at the next safe point, a second one at once.
import { rmSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { RecipeConfig } from "../../../../protocol/recipe.ts";
import { checkRecipe, recipeError } from "../../recipes/checkRecipe.ts";
import { readConfig, writeConfig } from "../../runs/configFile.ts";
import { askCoordinator } from "../../runs/controlClient.ts";
import { readRunEnvironment } from "../../runs/environment.ts";
import { readJournal } from "../../runs/journal.ts";
import { copyRecipe, readRecipeFolder } from "../../runs/recipeCopy.ts";
import { createRunFolder, findRun, folderError, type RunFolder, runFolderAt } from "../../runs/runFolder.ts";
import { type OpenEngines, type RunEnd, type RunRequest, runRecipe } from "../../runs/runRecipe.ts";
import { createStopSwitch, type StopSwitch } from "../../runs/stopSwitch.ts";
import type { Clock } from "../../sampling/clock.ts";
import { evaluationTable } from "../evaluationTable.ts";
import { type ExitName, exitOfError, exitOfRun } from "../exitCodes.ts";
import { progressOf } from "../openRun.ts";
import { describeError, type Output } from "../output.ts";
import type { RunProgress } from "../runProgress.ts";
import { createRunView, type RunView } from "../runView.ts";
import { stopNotice } from "../stopNotice.ts";
import { formatBytes, formatDuration } from "../terminal/numbers.ts";
import type { TerminalStream } from "../terminal/screen.ts";
import { problemLines, type RecipeArguments } from "./check.ts";
import { controlRun } from "./control.ts";

/** Delivers SIGINT and SIGTERM until the returned function is called. */
export type OnSignal = (handler: () => void) => () => void;

export interface RunServices {
  readonly version: string;
  /** How this program is called on a command line: `rollscope`, or `node dist/cli.mjs`. */
  readonly invocation: string;
  readonly clock: Clock;
  readonly openEngines: OpenEngines;
  readonly onSignal: OnSignal;
  readonly stdout: TerminalStream;
}

/** @param into a run's folder that was made already, empty; null: make one */
export async function runCommand(
  path: string,
  given: RecipeArguments,
  into: string | null,
  services: RunServices,
  output: Output,
): Promise<ExitName> {
  const checked = await checkRecipe(path, given);
  const refused = recipeError(checked);
  if (refused !== null || checked.config === null) {
    output.document({ error: describeError(refused), problems: checked.problems });
    output.lines(problemLines(checked.problems, output.paint));
    return "config";
  }
  const now = new Date(services.clock.now());
  const folder = into === null ? createRunFolder(checked.outputDir, checked.config.name, now) : runFolderAt(into);
  try {
    writeConfig(folder, checked.config, checked.origins);
    copyRecipe(folder, checked.folder);
  } catch (error) {
    // Nothing has run in it, so nothing is lost with it.
    if (into === null) rmSync(folder.path, { recursive: true, force: true });
    throw folderError(error, folder);
  }
  return await attempt(folder, { attempt: 1, config: checked.config, recipeFolder: checked.folder }, services, output);
}

export async function resumeCommand(
  wanted: string,
  outputDir: string,
  services: RunServices,
  output: Output,
): Promise<ExitName> {
  const folder = findRun(wanted, outputDir);
  const state = await askCoordinator(folder, "status");
  if (state !== null) {
    if (!state.pausing) {
      throw new RollscopeError("RUN_ACTIVE", `The run ${folder.run} is running already (process ${state.pid}).`, {
        next: "`rollscope stop` ends it; `rollscope list` shows how far it is.",
        at: { run: folder.run },
      });
    }
    const after = await controlRun(folder, "resume");
    output.document(after);
    if (!output.json) output.lines([`${after.run} goes on from step ${after.step}/${after.steps}.`]);
    return "ok";
  }
  const progress = progressOf(folder);
  const config = readConfig(folder);
  const recipeFolder = readRecipeFolder(folder);
  return await attempt(
    folder,
    { attempt: attemptAfter(progress.attempt, folder), config, recipeFolder },
    services,
    output,
  );
}

/** An attempt that wrote its environment and then lost its journal has used its number too. */
function attemptAfter(journalled: number, folder: RunFolder): number {
  return Math.max(journalled, readRunEnvironment(folder)?.attempt ?? 0) + 1;
}

async function attempt(
  folder: RunFolder,
  which: Pick<RunRequest, "attempt" | "config" | "recipeFolder">,
  services: RunServices,
  output: Output,
): Promise<ExitName> {
  const view = createRunView(output, services.stdout, services.clock, readJournal(folder.journal).events);
  const stops = createStopSwitch();
  const off = services.onSignal(() => onInterrupt(stops, view, which.config));
  try {
    const end = await runRecipe({
      ...which,
      folder,
      version: services.version,
      stops,
      observer: view,
      clock: services.clock,
      openEngines: services.openEngines,
    });
    view.dispose();
    report(folder, end, view.state(), services.invocation, output);
    return end.error instanceof RollscopeError && end.status === "failed"
      ? exitOfError(end.error.code)
      : exitOfRun(end.status);
  } finally {
    view.dispose();
    off();
  }
}

function onInterrupt(stops: StopSwitch, view: RunView, config: RecipeConfig): void {
  view.notice(stops.stopping ? "Stopping at once." : stopNotice(view.state(), config.training));
  stops.stop();
}

/** How the run is named in a command that is typed in this folder. */
function typedName(folder: RunFolder): string {
  if (dirname(folder.path) === resolve("runs")) return folder.name;
  const path = relative(process.cwd(), folder.path);
  return path.startsWith("..") ? folder.path : `.${sep}${path}`;
}

function report(folder: RunFolder, end: RunEnd, progress: RunProgress, invocation: string, output: Output): void {
  const { record } = end;
  const peakMemory = progress.ended?.peakMemory ?? null;
  const name = typedName(folder);
  const hasRecords = progress.points.length + progress.evaluations.length > 0;
  const inspect = `${invocation} inspect ${name}${record === null ? "" : ` ${record}`}`;
  output.document({
    run: folder.run,
    path: folder.path,
    status: end.status,
    step: end.step,
    steps: progress.steps,
    error: end.error === null ? null : describeError(end.error),
    evaluations: progress.evaluations,
    peakMemory,
    record,
    inspect: hasRecords ? inspect : null,
  });
  if (output.json) return;
  if (end.error !== null) output.error(end.error);
  const time =
    progress.attemptBegun === null || progress.lastAt === null
      ? ""
      : ` after ${formatDuration(progress.lastAt - progress.attemptBegun)}`;
  const memory = peakMemory === null ? "" : `, peak memory ${formatBytes(peakMemory)}`;
  const table = evaluationTable(progress.evaluations, output.width);
  output.lines([
    "",
    `${end.status} at step ${end.step}/${progress.steps}${time}${memory}: ${folder.path}`,
    ...(table.length === 0 ? [] : ["", ...table]),
    "",
    ...(end.status === "completed" ? [] : [`Go on:                   ${invocation} resume ${name}`]),
    ...(hasRecords
      ? [
          `Open its dashboard:      ${invocation} open ${name}`,
          `Look at a trajectory:    ${inspect}`,
          `Look at the worst ones:  ${invocation} inspect ${name} --worst`,
        ]
      : []),
  ]);
}
