// The commands that take trajectories in and out, for the command tree of program.ts: import, export.
import type { Command, Option } from "commander";
import { exportFormats } from "../runs/exportRun.ts";
import { exportCommand } from "./commands/export.ts";
import { importCommand } from "./commands/import.ts";
import type { ExitName } from "./exitCodes.ts";
import type { AddCommand } from "./recipeCommands.ts";

export interface InterchangeServices {
  readonly now: () => number;
  /** Folder of the runs that a command's options name. */
  outputDirOf(options: { readonly outputDir?: string }): string;
  outputDir(): Option;
  /** Runs work that the user can stop. */
  cancellable(work: (signal: AbortSignal) => Promise<ExitName>): Promise<ExitName>;
}

interface Options {
  readonly into?: string;
  readonly format: string;
  readonly out?: string;
}

export function addInterchangeCommands(program: Command, add: AddCommand, services: InterchangeServices): void {
  const { outputDir } = services;
  add(
    program,
    "import <file...>",
    "Read trajectories of other tools, whatever their format, or the archive of a run, as a run to look at.",
    "rollscope import trajectory.traj\nrollscope import logs/*.eval --into runs/evaluation --json",
    (words, options, output) =>
      services.cancellable((signal) =>
        importCommand(
          words,
          (options as Options).into ?? null,
          services.outputDirOf(options),
          services.now,
          signal,
          output,
        ),
      ),
  )
    .option("--into <folder>", "The run's own folder: a new one, or an earlier import that is added to.")
    .addOption(outputDir());
  add(
    program,
    "export <run>",
    "Write a run's records for other tools: chat lines, training rows as safetensors, or the run as one archive.",
    "rollscope export latest --format chat --out conversations.jsonl\nrollscope export latest --format archive",
    ([run = ""], options, output) => {
      const { format, out } = options as Options;
      return exportCommand(run, format, out ?? null, services.outputDirOf(options), output);
    },
  )
    .option("--format <format>", `One of ${exportFormats.join(", ")}.`, "chat")
    .option("--out <path>", "The file to write (default: named after the run, in this folder).")
    .addOption(outputDir());
}
