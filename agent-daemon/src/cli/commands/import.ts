// `rollscope import FILE...`: trajectories of other tools, or the archive of a run, as a run of one's own.
import type { ImportedRun } from "../../runs/importRun.ts";
import { importRun } from "../../runs/importRun.ts";
import type { ExitName } from "../exitCodes.ts";
import type { Output } from "../output.ts";
import { renderTable } from "../terminal/table.ts";
import { visible } from "../terminal/text.ts";

const problemsShown = 10;

export async function importCommand(
  files: readonly string[],
  into: string | null,
  outputDir: string,
  now: () => number,
  signal: AbortSignal,
  output: Output,
): Promise<ExitName> {
  const imported = await importRun({ files, into, outputDir, now, signal });
  output.document({
    run: imported.folder.name,
    path: imported.folder.path,
    records: imported.records,
    files: imported.files,
  });
  show(imported, output);
  // Some of what was asked for could not be read.
  return imported.files.some((file) => file.problemCount > 0) ? "failed" : "ok";
}

function show({ folder, records, files }: ImportedRun, output: Output): void {
  for (const { problems, problemCount } of files) {
    for (const problem of problems.slice(0, problemsShown)) output.note(`${problem.message} [${problem.code}]`);
    if (problemCount > problemsShown) output.note(`… and ${problemCount - problemsShown} more problems.`);
  }
  if (output.json) return;
  const rows = files.map((file) => [
    visible(file.path),
    file.format ?? "unreadable",
    String(file.records),
    String(file.problemCount),
  ]);
  const right = { align: "right" as const };
  const titles = [
    { title: "file" },
    { title: "format" },
    { title: "trajectories", ...right },
    { title: "problems", ...right },
  ];
  output.lines([
    ...renderTable(titles, rows, output.width),
    "",
    `${records} trajectories in ${folder.path}. Look at them with \`rollscope inspect ${folder.path}\`.`,
  ]);
}
