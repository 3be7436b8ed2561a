// The texts of reports: what the environment check found, why a loss is zero, a log as a terminal would leave it. Pure.
import type { DaemonResult } from "../protocol/daemonMethods.ts";
import type { Explanation, RunSummary } from "../protocol/runView.ts";
import { shortNumber } from "./runs/describeRun.ts";

export type DoctorItem = DaemonResult<"doctor">["items"][number];

const signs: Readonly<Record<DoctorItem["status"], string>> = { ok: "✓", warning: "!", failed: "✗", running: "…" };

export function doctorText(items: readonly DoctorItem[], done: boolean): string {
  const failed = items.filter(({ status }) => status === "failed").length;
  const warned = items.filter(({ status }) => status === "warning").length;
  const sum = !done
    ? "Trying what a run needs…"
    : failed > 0
      ? `${failed} of ${items.length} checks failed. What to do stands beside them.`
      : warned > 0
        ? `Runs can start; ${warned} of ${items.length} checks have something to say.`
        : "Everything that a run needs works on this machine.";
  const width = Math.max(0, ...items.map(({ title }) => title.length));
  const lines = items.flatMap(({ status, title, detail, next }) => [
    ...hanging(`${signs[status]} ${title.padEnd(width)}  `, detail),
    ...(next === null ? [] : hanging(`  ${"".padEnd(width)}  → `, next)),
  ]);
  return `Rollscope: Check Environment\n\n${sum}\n\n${lines.join("\n")}\n`;
}

const lineWidth = 100;

/** Words in lines of bounded length, the later ones under the first word. */
function hanging(lead: string, text: string): string[] {
  const lines: string[] = [];
  let line = lead;
  for (const word of text.split(/\s+/)) {
    if (line.trim() !== "" && line !== lead && line.length + word.length > lineWidth) {
      lines.push(line.trimEnd());
      line = "".padEnd(lead.length);
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()];
}

export function explanationText(run: RunSummary, explanation: Explanation): string {
  const lines = [`${run.recipe}, step ${explanation.step}: why is the loss zero?`, "", explanation.answer];
  for (const [index, cause] of explanation.causes.entries()) {
    lines.push("", `${index + 1}. ${cause.sentence}`);
    for (const [name, value] of Object.entries(cause.evidence)) lines.push(`   ${name} = ${shortNumber(value)}`);
    if (cause.key !== null) lines.push(`   Decided by ${cause.key} in recipe.yaml.`);
    if (cause.records.length > 0) lines.push(`   Records: ${cause.records.join(", ")}`);
  }
  return `${lines.join("\n")}\n`;
}
