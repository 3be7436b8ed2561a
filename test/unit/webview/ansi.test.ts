// Terminal output as a page shows it: colours kept, nothing wiped, progress lines collapsed.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ansiReader, plainText } from "../../../webview/shared/ansi.ts";

function read(...pieces: string[]) {
  const reader = ansiReader();
  for (const piece of pieces) reader.write(piece);
  return reader.lines;
}
const texts = (...pieces: string[]) => read(...pieces).map(plainText);

describe("P39: terminal text", () => {
  it("keeps the colour of a word and nothing of its codes", () => {
    const [line] = read("\x1b[31mERR\x1b[0m ok");
    expect(line!.map(({ text, style }) => [text, style.foreground])).toEqual([
      ["ERR", 1],
      [" ok", null],
    ]);
  });

  it("shows of a progress line what stands there last", () => {
    expect(texts("10%\r20%\r30%\ndone")).toEqual(["30%", "done"]);
    expect(texts("one\r\ntwo\r\n")).toEqual(["one", "two", ""]);
  });

  it("lets nothing be wiped, and takes titles away", () => {
    expect(texts("kept\x1b[2J and \x1b]0;t\x07here\x1b[H\x1b[?25l!")).toEqual(["kept and here!"]);
  });

  it("reads extended colours", () => {
    const [line] = read("\x1b[38;5;196mred\x1b[48;2;1;2;3mon\x1b[1;4;97mbold");
    expect(line![0]!.style.foreground).toBe("rgb(255, 0, 0)");
    expect(line![1]!.style.background).toBe("rgb(1, 2, 3)");
    expect(line![2]!.style).toMatchObject({ bold: true, underline: true, foreground: 15 });
  });

  it("forgets the oldest lines beyond what it keeps", () => {
    const reader = ansiReader(3);
    reader.write("1\n2\n3\n4\n5");
    expect(reader.lines.map(plainText)).toEqual(["3", "4", "5"]);
  });

  it("reads the same however the text is cut into writes", () => {
    const piece = fc.constantFrom(
      "\x1b[31m",
      "\x1b[0m",
      "\x1b]0;t\x07",
      "\x1b]8;;x\x1b\\",
      "\x1b[2K",
      "\r",
      "\n",
      "a",
      "中",
      "\b",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.array(fc.nat(80), { maxLength: 6 }), (parts, cuts) => {
        const text = parts.join("");
        const places = [0, ...cuts.map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b), text.length];
        const pieces = places.slice(1).map((end, index) => text.slice(places[index], end));
        expect(read(...pieces)).toEqual(read(text));
      }),
    );
  });

  it("never keeps a control character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        for (const line of texts(text)) for (const letter of line) expect(letter === "\t" || letter >= " ").toBe(true);
      }),
    );
  });
});
