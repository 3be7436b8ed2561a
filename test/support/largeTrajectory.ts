// Large files of one trajectory, written piece by piece: so many turns, so many bytes in all.
import { closeSync, mkdtempSync, openSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type LargeForm = "chat line" | "session lines" | "document" | "record list";

/** What a turn says; each differs, quotes and escapes included. */
export function largeText(turn: number, characters: number): string {
  const line = `turn ${turn}: he said "x\\y" and wrote {"a": [${turn}]} — größer 温度\n`;
  return line.repeat(Math.ceil(characters / line.length)).slice(0, characters);
}

/**
 * Gives the file's path.
 *
 * @param bytes in all, about
 * @param first text before the trajectory, such as a line with another one
 */
export function writeLargeTrajectory(form: LargeForm, turns: number, bytes: number, first = ""): string {
  const path = join(mkdtempSync(join(tmpdir(), "large-")), "large.dat");
  const file = openSync(path, "w");
  // Escapes and UTF-8 make the text about a tenth longer.
  const characters = Math.floor((bytes / turns - 90) / 1.17);
  const message = (turn: number) => ({
    role: turn === 0 ? "system" : turn % 2 === 1 ? "user" : "assistant",
    content: largeText(turn, characters),
  });
  const pieces = {
    "chat line": {
      before: '{"messages": [',
      element: (turn: number) => JSON.stringify(message(turn)),
      between: ", ",
      after: '], "reward": 0.5}\n',
    },
    document: {
      before: '{\n "environment": "main",\n "history": [\n',
      element: (turn: number) => JSON.stringify(message(turn), null, 1),
      between: ",\n",
      after: '\n ],\n "trajectory": [],\n "info": {"exit_status": "submitted"}\n}\n',
    },
    "record list": {
      before: '[{"task_id": 7, "trial": 0, "reward": 1.0, "traj": [',
      element: (turn: number) => JSON.stringify(message(turn)),
      between: ",",
      after: "]}]",
    },
    "session lines": {
      before: "",
      element: (turn: number) =>
        JSON.stringify({
          parentUuid: turn === 0 ? null : `u${turn - 1}`,
          uuid: `u${turn}`,
          sessionId: "s",
          isSidechain: false,
          type: turn % 2 === 0 ? "user" : "assistant",
          message: {
            role: turn % 2 === 0 ? "user" : "assistant",
            content: [{ type: "text", text: message(turn).content }],
          },
        }),
      between: "\n",
      after: "\n",
    },
  }[form];
  writeSync(file, first + pieces.before);
  for (let turn = 0; turn < turns; turn++) writeSync(file, (turn === 0 ? "" : pieces.between) + pieces.element(turn));
  writeSync(file, pieces.after);
  closeSync(file);
  return path;
}
