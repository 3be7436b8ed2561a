// placeholder
import type { RunSummary } from "../../../../protocol/runView.ts";
import type { RunFolder } from "../../runs/runFolder.ts";

export interface KnownRuns {
  /** @throws RUN_NOT_FOUND when no run lies there */
  folder(path: string): RunFolder;
  /** Looks into folders (runs, output folders, recipes' folders) and returns the runs found, newest first. */
  look(folders: readonly string[]): Promise<RunSummary[]>;
}
