// The commands that ask about what a run stored, for the command tree of program.ts: query, explain.
import { type Command, Option } from "commander";
import { trajectoryOrders } from "../../../protocol/daemonMethods.ts";
import { explainCommand } from "./commands/explain.ts";
import { type QueryOptions, queryCommand } from "./commands/query.ts";
import type { AddCommand } from "./recipeCommands.ts";

export interface RecordCommandServices {
  readonly outputDirOf: (options: { readonly outputDir?: string }) => string;
  readonly outputDir: () => Option;
  readonly wholeNumber: (text: string) => number;
}

export function addRecordCommands(program: Command, add: AddCommand, services: RecordCommandServices): void {
  const { outputDir, outputDirOf, wholeNumber } = services;
  add(
    program,
    "query <run>",
    "List the trajectories of a run that pass a filter; ranges are min..max, min.., ..max or one number.",
    "rollscope query latest --step 4 --score ..0.5 --order mismatch\nrollscope query latest --drifted --json",
    ([run = ""], options, output) => queryCommand(run, options as QueryOptions, outputDirOf(options), output),
  )
    .option("--step <n>", "Trajectories that this optimizer step trained.", wholeNumber)
    .option("--task <id>", "Trajectories of this task document.")
    .addOption(new Option("--split <split>", "Training or held-out tasks.").choices(["train", "heldOut"]))
    .option("--status <list>", "Any of these, with commas between: ready, failed, cancelled …")
    .option("--score <range>", "By score.")
    .option("--turns <range>", "By number of turns.")
    .option("--length <range>", "By sampled tokens.")
    .option("--staleness <range>", "By optimizer steps between sampling and training.")
    .option("--mismatch <range>", "By the largest |trainer − sampler| log-probability.")
    .option("--drifted", "Those with a history that was rendered anew and differed.")
    .option("--truncated", "Those with a call cut off by its limit.")
    .option("--tool-errors", "Those with a failed tool call.")
    .option("--text <text>", "Those in which this text occurs, letter for letter.")
    .addOption(new Option("--order <by>", "What to sort by.").choices([...trajectoryOrders]).default("created"))
    .option("--ascending", "Least first, instead of greatest.")
    .option("--after <page>", "The next page, as the page before named it.")
    .option("--limit <n>", "Show so many at most.", wholeNumber, 50)
    .addOption(outputDir());

  add(
    program,
    "explain <run>",
    "Say why a step's loss is zero, and where its tokens went.",
    "rollscope explain latest --step 4",
    ([run = ""], options, output) =>
      explainCommand(run, (options as { step?: number }).step ?? null, outputDirOf(options), output),
  )
    .option("--step <n>", "The step; default: the last one.", wholeNumber)
    .addOption(outputDir());
}
