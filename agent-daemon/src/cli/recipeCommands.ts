// The commands around writing a recipe, for the command tree of program.ts: new, doctor, dev.
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { devCommand } from "./commands/dev.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { newCommand } from "./commands/new.ts";
import type { RunServices } from "./commands/run.ts";
import type { ExitName } from "./exitCodes.ts";
import type { Output } from "./output.ts";

/** Adds a command to a parent and returns it; options arrive as commander read them. */
export type AddCommand = (
  parent: Command,
  usage: string,
  description: string,
  example: string,
  action: (words: readonly string[], options: object, output: Output) => Promise<ExitName>,
) => Command;

export interface RecipeCommandServices extends RunServices {
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export function addRecipeCommands(program: Command, add: AddCommand, services: RecipeCommandServices): void {
  add(
    program,
    "new <template> [name]",
    "Make a recipe that runs at once, from the template grpo or blank; a name alone means grpo.",
    "rollscope new grpo my-sums\nrollscope new blank my-task --json",
    (words, _options, output) => newCommand(words, services.invocation, output),
  );

  add(
    program,
    "doctor [recipe]",
    "Try each thing that a run needs, by using it, and say what to do about what does not work.",
    "rollscope doctor\nrollscope doctor recipes/arithmetic-grpo --network --json",
    ([recipe], options: DoctorOptions, output) =>
      doctorCommand(
        recipe ?? null,
        {
          outputDir: resolve(options.outputDir ?? (services.environment["ROLLSCOPE_OUTPUT_DIR"] || "runs")),
          network: options.network === true,
          progress: options.progress === true,
          environment: services.environment,
        },
        output,
      ),
  )
    .option("--network", "Try the network too.")
    .option("--output-dir <folder>", "Folder of the runs (default: $ROLLSCOPE_OUTPUT_DIR, else ./runs).")
    .addOption(new Option("--progress", "Tell each finding on stderr as JSON.").hideHelp());

  add(
    program,
    "dev <recipe>",
    "After each save: check the recipe, sample two tasks twice, and show what changed. Ctrl-C ends it.",
    "rollscope dev recipes/arithmetic-grpo\nrollscope dev my-recipe --model ./tiny-model",
    ([recipe = "", ...overrides], options: DevOptions, output) =>
      devCommand(
        recipe,
        {
          profile: options.profile ?? null,
          overrides,
          outputDir: null,
          environment: services.environment,
          model: options.model ?? null,
        },
        services,
        output,
      ),
  )
    .option("--profile <name>", "Lay a profile of the recipe over it.")
    .option("--model <source>", "A smaller model than the recipe's.")
    .allowUnknownOption()
    .allowExcessArguments()
    .usage("[options] <recipe> [--path.to.key=value ...]");
}

interface DevOptions {
  readonly profile?: string;
  readonly model?: string;
}

interface DoctorOptions {
  readonly network?: true;
  readonly outputDir?: string;
  readonly progress?: true;
}
