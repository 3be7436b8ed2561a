// The commands around writing a recipe, for the command tree of program.ts: new.
import type { Command } from "commander";
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
    "rollscope new grpo word-problems\nrollscope new blank my-task --json",
    (words, _options, output) => newCommand(words, services.invocation, output),
  );
}
