// `rollscope check RECIPE`: everything that can be known to be wrong before a run, with file, line and nearest key.
import { checkRecipe } from "../../recipes/checkRecipe.ts";
import { type ConfigProblem, describeOrigin } from "../../recipes/configProblem.ts";
import type { ExitName } from "../exitCodes.ts";
import type { Output } from "../output.ts";
import type { Paint } from "../terminal/colors.ts";
import { harmless } from "../terminal/text.ts";

export interface RecipeArguments {
  readonly profile: string | null;
  readonly overrides: readonly string[];
  readonly outputDir: string | null;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** One line a problem: place, sentence, what to do, code. */
export function problemLines(problems: readonly ConfigProblem[], paint: Paint): string[] {
  return problems.map((problem) => {
    const place = problem.origin === null ? "" : `${paint("bold", harmless(describeOrigin(problem.origin)))}: `;
    const kind = problem.severity === "error" ? paint("red", "error") : paint("cyan", "note");
    return `${place}${kind}: ${harmless(problem.sentence)} ${harmless(problem.next)} ${paint("dim", `[${problem.code}]`)}`;
  });
}

export async function checkCommand(
  path: string,
  given: RecipeArguments & { readonly types: boolean; readonly origins: boolean },
  output: Output,
): Promise<ExitName> {
  const checked = await checkRecipe(path, given);
  const errors = checked.problems.filter((problem) => problem.severity === "error").length;
  output.document({
    recipe: checked.file,
    ok: errors === 0,
    problems: checked.problems.map((problem) => ({
      ...problem,
      place: problem.origin === null ? null : describeOrigin(problem.origin),
    })),
    config: checked.config,
    origins: Object.fromEntries([...checked.origins].map(([key, origin]) => [key, describeOrigin(origin)])),
  });
  if (output.json) return errors === 0 ? "ok" : "config";
  output.lines(problemLines(checked.problems, output.paint));
  if (given.origins) {
    output.lines([...checked.origins].map(([key, origin]) => `${key}  ${output.paint("dim", describeOrigin(origin))}`));
  }
  output.lines([
    errors === 0
      ? output.paint("green", `${checked.file}: nothing stands in the way of a run.`)
      : output.paint("red", `${checked.file}: ${errors} ${errors === 1 ? "problem" : "problems"}.`),
  ]);
  return errors === 0 ? "ok" : "config";
}
