// `rollscope doctor [RECIPE]`: tries each thing a run needs and says what to do about what does not work. With --progress each
// finding is a line of JSON on stderr as it comes, for the daemon that started it.
import { resolve } from "node:path";
import { type DoctorItem, examine } from "../../runs/doctor/doctor.ts";
import type { ExitName } from "../exitCodes.ts";
import type { Output } from "../output.ts";
import { harmless } from "../terminal/text.ts";

export interface DoctorArguments {
  readonly outputDir: string;
  readonly network: boolean;
  readonly progress: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const marks = { ok: ["green", "ok     "], warning: ["yellow", "warning"], failed: ["red", "failed "] } as const;

export async function doctorCommand(recipe: string | null, given: DoctorArguments, output: Output): Promise<ExitName> {
  const tell = (item: DoctorItem) => {
    if (given.progress) output.note(JSON.stringify(item));
    if (output.json || item.status === "running") return;
    const [color, mark] = marks[item.status];
    output.lines([
      `${output.paint(color, mark)} ${item.title}: ${harmless(item.detail)}`,
      ...(item.next === null ? [] : [`        ${output.paint("dim", harmless(item.next))}`]),
    ]);
  };
  const items = await examine(
    {
      recipe: recipe === null ? null : resolve(recipe),
      outputDir: given.outputDir,
      environment: given.environment,
      network: given.network,
    },
    tell,
  );
  const failed = items.filter((item) => item.status === "failed").length;
  output.document({ ok: failed === 0, items });
  if (!output.json)
    output.lines([
      "",
      failed === 0
        ? output.paint("green", "Everything that a run needs works.")
        : output.paint("red", `${failed} of ${items.length} checks failed.`),
    ]);
  return failed === 0 ? "ok" : "failed";
}
