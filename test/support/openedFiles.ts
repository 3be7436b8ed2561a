// Opens a file of trajectories to its end and reads everything in it, for tests that compare it with what is known of it.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openTrajectoryFile } from "../../agent-daemon/src/store/interchange/openTrajectoryFile.ts";
import type { FileProblem, ImportedTrajectory, ImportedTurn } from "../../protocol/importedTrajectory.ts";

export interface ReadFile {
  readonly format: string;
  readonly facts: { readonly [name: string]: unknown };
  readonly problems: readonly FileProblem[];
  readonly all: readonly { readonly about: ImportedTrajectory; readonly turns: readonly ImportedTurn[] }[];
}

export async function readTrajectories(path: string): Promise<ReadFile> {
  const file = await openTrajectoryFile(path);
  try {
    await file.indexed;
    const all = [];
    for (const [index, { turnCount }] of file.trajectories().entries())
      all.push({ about: await file.trajectory(index), turns: await file.turns(index, 0, turnCount) });
    return { format: file.format, facts: file.facts, problems: [...file.problems], all };
  } finally {
    await file.close();
  }
}

/** Writes a file into a folder of its own and gives its path. */
export function temporaryFile(contents: string | Uint8Array, name = "file.dat"): string {
  const path = join(mkdtempSync(join(tmpdir(), "trajectories-")), name);
  writeFileSync(path, contents);
  return path;
}

/** What a reader sees of a turn: its text without reasoning. */
export function textOf({ parts }: ImportedTurn): string {
  return parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("");
}

export function callNames(turns: readonly ImportedTurn[]): string[] {
  return turns.flatMap((turn) => turn.toolCalls.map((call) => call.name));
}

/** Roles, tool calls, first and last text and number of characters, as the facts of the data files give them. */
export function conversationFacts(turns: readonly ImportedTurn[]) {
  const texts = turns.map(textOf);
  const short = (text: string | undefined) => [...(text ?? "")].slice(0, 80).join("");
  return {
    roles: turns.map((turn) => turn.role),
    tool_calls: callNames(turns),
    first_text: short(texts[0]),
    last_text: short(texts.at(-1)),
    chars: texts.reduce((sum, text) => sum + [...text].length, 0),
  };
}
