// Methods that bring files of other tools in as runs, and write runs out. Both work on files of the daemon's machine.
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { exportRun } from "../../runs/exportRun.ts";
import { importRun } from "../../runs/importRun.ts";
import type { CreateMethods } from "./methodTypes.ts";

export const interchangeMethods: CreateMethods = ({ runs, clock }) => ({
  handlers: {
    "file/import": async ({ paths, outputDir }, { signal }) => {
      const [first = homedir()] = paths;
      const { folder, records, files } = await importRun({
        files: paths,
        outputDir: outputDir ?? join(dirname(first), "runs"),
        into: null,
        now: clock.now,
        signal,
      });
      const [summary] = await runs.look([folder.path]);
      const found = summary ?? (await runs.run(folder.path)).summary();
      const problems = files.flatMap((file) =>
        file.problems.map(({ code, message, next, line }) => ({
          code,
          message: line === null ? message : `${file.path}:${line}: ${message}`,
          next,
        })),
      );
      return { summary: found, imported: records, problems };
    },
    "run/export": ({ folder, format, path }) => exportRun(runs.folder(folder), format, path),
  },
});
