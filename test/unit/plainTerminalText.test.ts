import fc from "fast-check";
import { expect, test } from "vitest";
import { plainTerminalText } from "../../protocol/plainTerminalText.ts";

test("P39: a log is clean text: no codes, one line of a progress bar, nothing wiped", () => {
  expect(plainTerminalText("\x1b[31mERR\x1b[0m\n10%\r20%\r30%\n\x1b[2Jstays\x1b]0;t\x07\r\nend")).toBe(
    "ERR\n30%\nstays\nend",
  );
  expect(plainTerminalText("a\tb\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\")).toBe("a\tblink");
});

test("P39: a code that is cut off at the end, or of any kind, leaves nothing that a terminal obeys", () => {
  for (const whole of ["\x1b[38;5;196m", "\x1b]0;title\x07", "\x1b(B", "\x9b31m"])
    for (let end = 1; end < whole.length; end++) expect(plainTerminalText(`text${whole.slice(0, end)}`)).toBe("text");
  const piece = fc.constantFrom(
    "\x1b",
    "[",
    "]",
    "0;t",
    "31m",
    "\x07",
    "\\",
    "P",
    "\r",
    "\n",
    "\x9b",
    "\b",
    "text",
    "中",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be left
      expect(plainTerminalText(pieces.join(""))).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
    }),
  );
});
