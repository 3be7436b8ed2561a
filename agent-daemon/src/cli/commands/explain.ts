// `rollscope explain RUN`: why a step's loss is zero, and where the tokens went, both answered from what the run stored.
import { RollscopeError } from "../../../../protocol/errors.ts";
import { type WasteStage, type Waterfall, wasteStages } from "../../../../protocol/runView.ts";
import { explainZeroLoss } from "../../daemon/explainZeroLoss.ts";
import { runWaterfall, stepWaterfall, type WaterfallSource } from "../../daemon/waterfall.ts";
import { readConfig } from "../../runs/configFile.ts";
import { findRun } from "../../runs/runFolder.ts";
import type { ExitName } from "../exitCodes.ts";
import { openStores, progressOf } from "../openRun.ts";
import type { Output } from "../output.ts";
import { formatPercent } from "../terminal/numbers.ts";
import { renderTable } from "../terminal/table.ts";

const stageNames: Readonly<Record<WasteStage, string>> = {
  notCaptured: "of rollouts without a score",
  masked: "not trainable",
  truncated: "cut off and masked",
  stale: "too stale",
  zeroVariance: "without an advantage",
  filtered: "filtered",
  clipped: "clipped",
  contributing: "contributing",
};

function waterfallLines({ sampled, stages }: Waterfall, width: number | null): string[] {
  const right = { align: "right" as const };
  const rows = wasteStages
    .filter((stage) => stages[stage] > 0)
    .map((stage) => [stageNames[stage], String(stages[stage]), formatPercent(stages[stage] / sampled)]);
  return renderTable(
    [{ title: "tokens" }, { title: "", ...right }, { title: "", ...right }],
    [["sampled", String(sampled), ""], ...rows],
    width,
  );
}

export async function explainCommand(
  wanted: string,
  step: number | null,
  outputDir: string,
  output: Output,
): Promise<ExitName> {
  const folder = findRun(wanted, outputDir);
  const last: number = progressOf(folder).points.at(-1)?.step ?? 0;
  const chosen: number = step ?? last;
  const stores = await openStores(folder);
  try {
    const { store, blobs } = stores;
    const source: WaterfallSource = { store, blobs, run: folder.run, config: readConfig(folder) };
    const explanation = await explainZeroLoss(source, chosen);
    const ofStep = await stepWaterfall(source, chosen);
    if (explanation === null || ofStep === null) {
      throw new RollscopeError("COMMAND_INVALID", `The run ${folder.run} has no step ${chosen}.`, {
        next: `Steps count from 1; the last one is ${last}.`,
        at: { run: folder.run, step: chosen },
      });
    }
    const ofRun = await runWaterfall(source);
    output.document({ explanation, waterfall: { step: ofStep, run: ofRun } });
    if (output.json) return "ok";
    output.lines([
      explanation.answer,
      ...explanation.causes.flatMap(({ sentence, key, records }) => [
        `- ${sentence}`,
        ...(key === null ? [] : [`  decided by ${key}`]),
        ...(records.length === 0 ? [] : [`  records ${records.join(", ")}`]),
      ]),
      "",
      `Where the tokens of step ${chosen} went:`,
      ...waterfallLines(ofStep, output.width),
      "",
      "Where the tokens of the run went:",
      ...waterfallLines(ofRun, output.width),
    ]);
    return "ok";
  } finally {
    await stores.dispose();
  }
}
