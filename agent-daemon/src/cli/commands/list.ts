// `rollscope list`: the runs of a folder, with how far they are and how well they do.
import { listRunFolders } from "../../runs/runFolder.ts";
import type { ExitName } from "../exitCodes.ts";
import { seeRun } from "../openRun.ts";
import type { Output } from "../output.ts";
import { shownValue } from "../shownMetrics.ts";
import { formatNumber, formatPercent, formatTime } from "../terminal/numbers.ts";
import { renderTable } from "../terminal/table.ts";
import { visible } from "../terminal/text.ts";

export async function listCommand(outputDir: string, output: Output): Promise<ExitName> {
  const runs = await Promise.all(
    listRunFolders(outputDir).map(async (folder) => {
      const { progress, status } = await seeRun(folder);
      const base = progress.evaluations.at(0)?.summary.scores["score"];
      const latest = progress.evaluations.at(-1)?.summary.scores["score"];
      const metrics = progress.points.at(-1)?.metrics ?? {};
      return {
        run: folder.name,
        path: folder.path,
        recipe: progress.recipe,
        model: progress.model,
        status,
        attempt: progress.attempt,
        step: progress.step,
        steps: progress.steps,
        begun: progress.begun,
        reward: shownValue(metrics, ["reward_mean"]) ?? null,
        evaluation: { base: base ?? null, latest: latest ?? null },
      };
    }),
  );
  runs.sort((a, b) => (a.begun ?? 0) - (b.begun ?? 0));
  output.document({ folder: outputDir, runs });
  if (output.json) return "ok";
  if (runs.length === 0) {
    output.lines([`No runs in ${outputDir}. Start one with \`rollscope run RECIPE\`.`]);
    return "ok";
  }
  const score = (value: number | null) =>
    value === null ? "" : value >= 0 && value <= 1 ? formatPercent(value) : formatNumber(value);
  const rows = runs.map((run) => [
    run.run,
    run.status,
    `${run.step}/${run.steps}`,
    run.reward === null ? "" : formatNumber(run.reward),
    score(run.evaluation.base),
    score(run.evaluation.latest),
    run.begun === null ? "" : formatTime(run.begun),
    visible(run.model),
  ]);
  const right = { align: "right" as const };
  output.lines(
    renderTable(
      [
        { title: "run" },
        { title: "status" },
        { title: "step", ...right },
        { title: "reward", ...right },
        { title: "base", ...right },
        { title: "latest", ...right },
        { title: "begun" },
        { title: "model" },
      ],
      rows,
      output.width,
    ),
  );
  return "ok";
}
