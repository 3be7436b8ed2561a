// `rollscope dev RECIPE`: after each save a round on a few tasks, in plain lines. Ctrl-C ends it.
import { RollscopeError } from "../../../../protocol/errors.ts";
import { findRecipe } from "../../recipes/loadConfig.ts";
import { type DevRound, DevRounds, type DevSample } from "../../runs/dev/devRounds.ts";
import { watchRecipe } from "../../runs/dev/watchRecipe.ts";
import type { ExitName } from "../exitCodes.ts";
import type { Output } from "../output.ts";
import { visible } from "../terminal/text.ts";
import { problemLines, type RecipeArguments } from "./check.ts";
import type { RunServices } from "./run.ts";

export interface DevArguments extends RecipeArguments {
  /** Replaces the recipe's model. */
  readonly model: string | null;
}

export async function devCommand(
  path: string,
  given: DevArguments,
  services: RunServices,
  output: Output,
): Promise<ExitName> {
  const { folder } = await findRecipe(path);
  const stop = new AbortController();
  const off = services.onSignal(() =>
    stop.abort(new RollscopeError("RUN_STOPPED", "Stopped.", { next: "Run the command again." })),
  );
  const overrides = given.model === null ? given.overrides : [...given.overrides, `--model.source=${given.model}`];
  const rounds = new DevRounds({
    recipe: folder,
    check: { profile: given.profile, overrides, environment: given.environment },
    openEngines: services.openEngines,
    clock: services.clock,
    signal: stop.signal,
  });
  let wake = () => {};
  let isDirty = true;
  const unwatch = watchRecipe(folder, () => {
    isDirty = true;
    wake();
  });
  stop.signal.addEventListener("abort", () => wake(), { once: true });
  try {
    while (!stop.signal.aborted) {
      if (isDirty) {
        isDirty = false;
        await showRound(rounds, output, stop.signal);
      } else
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (isDirty || stop.signal.aborted) resolve();
        });
    }
    return "ok";
  } finally {
    unwatch();
    off();
    await rounds.dispose();
  }
}

async function showRound(rounds: DevRounds, output: Output, signal: AbortSignal): Promise<void> {
  try {
    const round = await rounds.next();
    if (signal.aborted) return;
    output.document(round);
    if (!output.json) output.lines(roundLines(round, output));
  } catch (error) {
    // Told and not thrown: the next save may mend it.
    if (!signal.aborted) output.error(error);
  }
}

const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(1)} s`;

/** A round for people. */
export function roundLines(round: DevRound, output: Pick<Output, "paint" | "width">): string[] {
  const { paint } = output;
  const { did, times, samples } = round;
  const errors = round.problems.filter(({ severity }) => severity === "error").length;
  const changed = samples.filter(({ before }) => before !== null).length;
  const what = did === "nothing" ? `${errors} ${errors === 1 ? "problem" : "problems"}` : did;
  const news =
    round.round === 1 || did === "nothing"
      ? ""
      : changed === 0
        ? ", nothing changed"
        : `, ${changed} of ${samples.length} changed`;
  return [
    paint("bold", `round ${round.round}: ${what}${news}`) +
      paint("dim", ` (${seconds(times.total)}: check ${seconds(times.check)}, rollouts ${seconds(times.sample)})`),
    ...problemLines(round.problems, paint),
    ...samples.flatMap((sample) => sampleLines(sample, output)),
  ];
}

function sampleLines(sample: DevSample, { paint, width }: Pick<Output, "paint" | "width">): string[] {
  const show = (score: number | null) => (score === null ? "–" : String(Number(score.toPrecision(4))));
  const cut = (text: string) => {
    const line = visible(text);
    const room = Math.max(20, (width ?? 120) - 8);
    return line.length > room ? `${line.slice(0, room - 1)}…` : line;
  };
  const { before } = sample;
  const score =
    before !== null && before.score !== sample.score
      ? paint("yellow", `${show(before.score)} → ${show(sample.score)}`)
      : show(sample.score);
  const parts = Object.entries(sample.breakdown).map(([name, value]) => `${visible(name)} ${show(value)}`);
  const head = `  ${visible(sample.task)}/${sample.sample}  score ${score}${parts.length === 0 ? "" : paint("dim", `  ${parts.join(", ")}`)}`;
  return [
    head,
    ...(sample.error === null ? [] : [`      ${paint("red", cut(sample.error))}`]),
    ...(before !== null && before.text !== sample.text ? [`      ${paint("dim", `- ${cut(before.text)}`)}`] : []),
    `      ${before !== null && before.text !== sample.text ? "+ " : ""}${cut(sample.text)}`,
  ];
}
