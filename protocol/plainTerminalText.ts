// What a program wrote to a terminal, as text: the escape codes gone, also one that is cut off at the end, and of a line that was written
// over, what stood there last. Nothing that a terminal would obey is left.

const escapes =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes are what it removes
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*(?:[@-~]|$)|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)?|\x1b[ -/]*(?:[0-~]|$)/g;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it removes
const controls = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;

export function plainTerminalText(text: string): string {
  return text
    .replaceAll(escapes, "")
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => line.replace(/\r+$/, "").split("\r").at(-1)!.replaceAll(controls, ""))
    .join("\n");
}
