// `rollscope export RUN`: a run's records as lines of chat, as training rows, or the whole run as one archive.
import { RollscopeError } from "../../../../protocol/errors.ts";
import { type ExportFormat, exportFormats, exportName, exportRun } from "../../runs/exportRun.ts";
import { findRun } from "../../runs/runFolder.ts";
import type { ExitName } from "../exitCodes.ts";
import type { Output } from "../output.ts";
import { formatBytes } from "../terminal/numbers.ts";

const units: { readonly [Format in ExportFormat]: string } = {
  chat: "conversations",
  training: "training rows",
  archive: "records",
};

export async function exportCommand(
  wanted: string,
  format: string,
  out: string | null,
  outputDir: string,
  output: Output,
): Promise<ExitName> {
  const known = exportFormats.find((each) => each === format);
  if (known === undefined) {
    throw new RollscopeError("COMMAND_INVALID", `There is no export format ${format}.`, {
      next: `Use --format ${exportFormats.join(", --format ")}.`,
      at: { format },
    });
  }
  const folder = findRun(wanted, outputDir);
  const exported = await exportRun(folder, known, out ?? exportName(folder, known));
  output.document({ run: folder.name, format: known, ...exported });
  if (!output.json)
    output.lines([`${exported.records} ${units[known]}, ${formatBytes(exported.bytes)}: ${exported.path}`]);
  return "ok";
}
