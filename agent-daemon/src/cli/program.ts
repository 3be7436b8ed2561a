// The command tree of `rollscope`: names, options, help. Arguments are read here and nowhere else; what commands do is in
// commands/.
import { resolve } from "node:path";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { distance } from "fastest-levenshtein";
import { RollscopeError } from "../../../protocol/errors.ts";
import { type SeedStack, seedStacks } from "../../../protocol/seedKnobs.ts";
import { isOverride } from "../recipes/configOverrides.ts";
import { checkCommand } from "./commands/check.ts";
import { controlCommand } from "./commands/control.ts";
import { type DaemonServices, daemonCommand } from "./commands/daemon.ts";
import { fetchData, inspectData, listData } from "./commands/data.ts";
import { inspectCommand } from "./commands/inspect.ts";
import { listCommand } from "./commands/list.ts";
import { fetchModel, listModels, verifyModels } from "./commands/models.ts";
import { openCommand } from "./commands/open.ts";
import { type RunServices, resumeCommand, runCommand } from "./commands/run.ts";
import { translateCommand } from "./commands/translate.ts";
import { describeExitCodes, type ExitName, exitOfError } from "./exitCodes.ts";
import { addInterchangeCommands } from "./interchangeCommands.ts";
import { createOutput, type Output, type Streams } from "./output.ts";
import { addRecipeCommands } from "./recipeCommands.ts";
import { addRecordCommands } from "./recordCommands.ts";

export interface ProgramContext extends Omit<RunServices, "stdout"> {
  readonly streams: Streams;
  /** What the daemon is started with, and the streams of its bridge. */
  readonly daemon: Pick<DaemonServices, "program" | "input" | "output">;
}

/** Options as they come from commander; a command reads those it declared. */
interface Options {
  readonly json?: true;
  readonly outputDir?: string;
  readonly profile?: string;
  readonly types?: true;
  readonly origins?: true;
  readonly from?: SeedStack;
  readonly now?: true;
  readonly step?: number;
  readonly group?: string;
  readonly worst?: number | true;
  readonly limit: number;
  readonly revision?: string;
  readonly background?: true;
  readonly browser?: boolean;
  readonly into?: string;
}

type Action = (words: readonly string[], options: Options, output: Output) => Promise<ExitName>;

function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(Number(text)))
    throw new InvalidArgumentError("Give a whole number.");
  return Number(text);
}

const worstByDefault = 20;

/** Runs one command line (without node and script). Never rejects; the name of the exit is what happened. */
export async function runProgram(words: readonly string[], context: ProgramContext): Promise<ExitName> {
  const { streams } = context;
  const environment = streams.environment;
  const services: RunServices = { ...context, stdout: streams.stdout };
  const outputDirOf = (options: Pick<Options, "outputDir">) =>
    resolve(options.outputDir ?? (environment["ROLLSCOPE_OUTPUT_DIR"] || "runs"));
  let exit: ExitName = "ok";

  const program = new Command("rollscope")
    .description("See, step and steer reinforcement learning of language-model agents.")
    .version(context.version, "--version", "Print the version.")
    .helpOption("-h, --help", "Show help.")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void streams.stdout.write(text),
      writeErr: (text) => void streams.stderr.write(text),
      getOutHelpWidth: () => streams.stdout.columns ?? 100,
      getErrHelpWidth: () => streams.stderr.columns ?? 100,
    })
    .showSuggestionAfterError()
    .addHelpText("after", `\n${describeExitCodes()}\n\nEvery command takes --json and then prints one JSON document.`);

  const json = () => new Option("--json", "Print one JSON document instead of text.");
  const outputDir = () =>
    new Option("--output-dir <folder>", "Folder of the runs (default: $ROLLSCOPE_OUTPUT_DIR, else ./runs).");

  const add = (parent: Command, usage: string, description: string, example: string, action: Action): Command =>
    parent
      .command(usage)
      .description(description)
      .addOption(json())
      .addHelpText("after", `\nExample:\n${example.replace(/^/gm, "  ")}`)
      .action(async (...given: unknown[]) => {
        const command = given.at(-1) as Command;
        const options = command.opts<Options>();
        const output = createOutput(streams, options.json === true);
        try {
          exit = await action(command.args, options, output);
        } catch (error) {
          output.error(error);
          exit = exitOfError(error instanceof RollscopeError ? error.code : null);
        }
      });

  const recipeArguments = (words: readonly string[], options: Options, command: string) => ({
    profile: options.profile ?? null,
    overrides: overridesOf(words.slice(1), command),
    outputDir: options.outputDir ?? null,
    environment,
  });
  const withRecipe = (command: Command): Command =>
    command
      .option("--profile <name>", "Lay a profile of the recipe over it.")
      .allowUnknownOption()
      .allowExcessArguments()
      .usage("[options] <recipe> [--path.to.key=value ...]");

  withRecipe(
    add(
      program,
      "run <recipe>",
      "Run a recipe, from its folder or its recipe.yaml.",
      "rollscope run recipes/arithmetic-grpo\nrollscope run recipes/arithmetic-grpo --profile quick --training.lr=1e-5",
      (words, options, output) =>
        runCommand(words[0] ?? "", recipeArguments(words, options, "run"), options.into ?? null, services, output),
    ),
  )
    .addOption(outputDir())
    .addOption(new Option("--into <folder>", "The run's folder, made by whoever starts it.").hideHelp());

  add(
    program,
    "resume <run>",
    "Go on with a paused run, or with one that ended early, from its last whole checkpoint.",
    "rollscope resume latest",
    ([run = ""], options, output) => resumeCommand(run, outputDirOf(options), services, output),
  ).addOption(outputDir());

  add(
    program,
    "stop <run>",
    "Stop a run at its next safe point, with a checkpoint; --now stops it at once.",
    "rollscope stop latest",
    ([run = ""], options, output) =>
      controlCommand(run, options.now === true ? "stop-now" : "stop", outputDirOf(options), output),
  )
    .option("--now", "Stop at once; steps after the last checkpoint are done again on resume.")
    .addOption(outputDir());

  add(
    program,
    "pause <run>",
    "Let a run wait at its next safe point, everything in memory.",
    "rollscope pause latest\nrollscope resume latest",
    ([run = ""], options, output) => controlCommand(run, "pause", outputDirOf(options), output),
  ).addOption(outputDir());

  add(
    program,
    "inspect <run> [record]",
    "List the records of a run, or show one trajectory token by token with its numbers.",
    "rollscope inspect latest --worst 10\nrollscope inspect latest t0-17-s3\nrollscope inspect latest t0-17-s3 --step 4 --json",
    ([run = "", record], options, output) =>
      inspectCommand(
        run,
        record ?? null,
        {
          step: options.step ?? null,
          group: options.group ?? null,
          worst: options.worst === undefined ? null : options.worst === true ? worstByDefault : options.worst,
          limit: options.limit,
        },
        outputDirOf(options),
        output,
      ),
  )
    .option(
      "--step <n>",
      "Records that this optimizer step trained; of a record, what this step made of it.",
      wholeNumber,
    )
    .option("--group <task>", "Records of this task only.")
    .option("--worst [n]", "Lowest score first; of a record, the least likely tokens first.", wholeNumber)
    .option("--limit <n>", "Show so many records at most.", wholeNumber, 50)
    .addOption(outputDir());

  add(program, "list", "List the runs.", "rollscope list --json", (_words, options, output) =>
    listCommand(outputDirOf(options), output),
  ).addOption(outputDir());

  withRecipe(
    add(
      program,
      "check <recipe>",
      "Say everything that is wrong with a recipe, with file, line and nearest key, without running it.",
      "rollscope check recipes/arithmetic-grpo --objective.clipLow=0.1",
      (words, options, output) => {
        if (options.from !== undefined) return translateCommand(words[0] ?? "", options.from, output);
        return checkCommand(
          words[0] ?? "",
          {
            ...recipeArguments(words, options, "check"),
            types: options.types === true,
            origins: options.origins === true,
          },
          output,
        );
      },
    ),
  )
    .addOption(
      new Option("--from <stack>", "Translate a configuration of another stack into a recipe.").choices(
        Object.keys(seedStacks),
      ),
    )
    .option("--types", "Check the types of the recipe's code too.")
    .option("--origins", "Show where each value comes from.");

  add(
    program,
    "open <run> [record]",
    "Open a run, one of its trajectories, or a file of trajectories as a page in a browser; prints its address.",
    "rollscope open latest\nrollscope open other-tool.jsonl --no-browser",
    ([run = "", record], options, output) =>
      openCommand(
        run,
        record ?? null,
        options.browser !== false,
        outputDirOf(options),
        { ...context, ...context.daemon, environment },
        output,
      ),
  )
    .option("--no-browser", "Print the address only.")
    .addOption(outputDir());

  add(
    program,
    "daemon [action]",
    "The daemon that editors talk to: start (in this terminal), stop, status, or stdio, which joins it to this process.",
    "rollscope daemon --background\nrollscope daemon status",
    ([action = "start"], options, output) =>
      daemonCommand(action, options.background === true, { ...context, ...context.daemon, environment }, output),
  ).option("--background", "Start it beside, unless one is running.");

  addRecordCommands(program, add, { outputDirOf, outputDir, wholeNumber });
  addInterchangeCommands(program, add, {
    outputDirOf,
    outputDir,
    now: context.clock.now,
    cancellable: (work) => cancellable(context, work),
  });
  addRecipeCommands(program, add, { ...services, environment });

  const models = program.command("models").description("Models: what is fetched, fetching, checking.");
  add(models, "list", "List fetched models and named sources.", "rollscope models list", (_words, _options, output) =>
    listModels(environment, output),
  );
  add(
    models,
    "fetch <source>",
    "Fetch a model: a named source, or a Hugging Face id. Prints its path.",
    "rollscope models fetch smollm2-135m-instruct",
    ([source = ""], options, output) =>
      cancellable(context, (signal) => fetchModel(source, options.revision ?? null, environment, signal, output)),
  ).option("--revision <name>", "Branch, tag or commit of a Hugging Face id.");
  add(
    models,
    "verify [model]",
    "Read fetched models again and compare them with the hashes they were fetched with.",
    "rollscope models verify",
    ([model], _options, output) => verifyModels(model ?? null, environment, output),
  );

  const data = program.command("data").description("Task files: what is fetched, fetching, looking into one.");
  add(data, "list", "List fetched data files.", "rollscope data list", (_words, _options, output) =>
    listData(environment, output),
  );
  add(
    data,
    "inspect <file>",
    "Count the rows of a task file, name its fields and show its first rows.",
    "rollscope data inspect recipes/arithmetic-grpo/train.jsonl",
    ([file = ""], options, output) => inspectData(file, options.limit, environment, output),
  ).option("--limit <n>", "Show so many rows.", wholeNumber, 5);
  add(
    data,
    "fetch <source>",
    "Fetch a file of a Hugging Face data set. Prints its path.",
    "rollscope data fetch hf://datasets/openai/gsm8k/main/train.jsonl",
    ([source = ""], _options, output) =>
      cancellable(context, (signal) => fetchData(source, environment, signal, output)),
  );

  try {
    await program.parseAsync([...words], { from: "user" });
    return exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? "ok" : "usage";
  }
}

/** What follows the recipe must be overrides. @throws COMMAND_INVALID */
function overridesOf(words: readonly string[], command: string): string[] {
  const wrong = words.find((word) => !isOverride(word));
  if (wrong === undefined) return [...words];
  const options = ["--profile", "--json", "--output-dir", "--types", "--origins", "--from", "--help"];
  const nearest = options.find((option) => distance(option, wrong) <= 2);
  throw new RollscopeError("COMMAND_INVALID", `${wrong} is neither an option of ${command} nor --path.to.key=value.`, {
    next: nearest === undefined ? `\`rollscope ${command} --help\` lists the options.` : `Did you mean ${nearest}?`,
    at: { argument: wrong },
  });
}

async function cancellable(
  context: ProgramContext,
  work: (signal: AbortSignal) => Promise<ExitName>,
): Promise<ExitName> {
  const stop = new AbortController();
  const off = context.onSignal(() =>
    stop.abort(
      new RollscopeError("RUN_STOPPED", "Stopped.", { next: "Run the command again to go on where it stopped." }),
    ),
  );
  try {
    return await work(stop.signal);
  } finally {
    off();
  }
}
