// Exact values and exact places in JSON text, however it is spaced, escaped or cut into chunks.
import fc from "fast-check";
import { parse } from "lossless-json";
import { describe, expect, it } from "vitest";
import { compilePlan, JsonScanner } from "../../../agent-daemon/src/store/interchange/jsonScanner.ts";
import { completeBeginning, parseExact, sliceAt } from "../../../agent-daemon/src/store/interchange/jsonText.ts";

const anyJson = fc.jsonValue({ maxDepth: 4 });
const spaced = fc.constantFrom(0, 1, "\t", 4);

describe("parseExact", () => {
  it("keeps integers of any size, and gives what JSON.parse gives otherwise", () => {
    fc.assert(
      fc.property(
        anyJson,
        fc.array(fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n })),
        spaced,
        (value, integers, space) => {
          const text = JSON.stringify({ value, text: integers.map(String) }, null, space).replace(
            /\}$/,
            `,"n":[${integers.join(", ")}]}`,
          );
          const number = (digits: string) =>
            /^-?\d+$/.test(digits) && !Number.isSafeInteger(Number(digits)) ? BigInt(digits) : Number(digits);
          expect(parseExact(text)).toEqual(parse(text, undefined, number));
        },
      ),
    );
  });

  it.each([
    ["00000000000000000001", ""],
    ["[1,]", ""],
    [`${"[".repeat(300)}${"]".repeat(300)}`, "nested"],
    ['{"a":NaNa}', ""],
  ])("%s is refused", (text, why) => {
    expect(() => parseExact(text)).toThrow(SyntaxError);
    expect(() => parseExact(text)).toThrow(expect.objectContaining({ message: expect.stringContaining(why) }));
  });

  it("numbers beyond all numbers are infinities, as Python reads them", () => {
    expect(parseExact("[1e400, -1e1234567890123456789]")).toEqual(["Infinity", "-Infinity"]);
  });

  it("fractions and exponents of many digits are numbers", () => {
    expect(parseExact("[0.12345678901234567,1.5e-3,12345678901234567890.5,-1e-1234567890123456789]")).toEqual([
      // biome-ignore lint/correctness/noPrecisionLoss: as a reader of JSON sees it
      0.12345678901234567, 0.0015, 12345678901234567000, -0,
    ]);
  });
});

describe("sliceAt", () => {
  it("is the text that stands at a path", () => {
    fc.assert(
      fc.property(anyJson, fc.string(), fc.string(), spaced, (value, key, other, space) => {
        fc.pre(key !== other);
        const text = JSON.stringify({ [other]: ['}"]', value], [key]: [1, { x: value }] }, null, space);
        const slice = sliceAt(text, [key, 1, "x"]);
        expect(JSON.parse(slice as string)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(text).toContain(slice);
        expect(sliceAt(text, [key, 2])).toBeNull();
      }),
    );
  });
});

describe("JsonScanner", () => {
  it("finds the same elements, and the same rest, however the bytes are cut", () => {
    const plan = compilePlan({ lists: ["messages", "traces.*.nodes"], maps: ["kept"] });
    fc.assert(
      fc.property(
        fc.array(anyJson),
        fc.array(fc.array(anyJson)),
        fc.dictionary(fc.string(), anyJson),
        anyJson,
        spaced,
        fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
        (messages, traces, kept, rest, space, sizes) => {
          const value = { rest, messages, traces: traces.map((nodes) => ({ nodes, rest })), kept, end: 1.5 };
          const bytes = Buffer.from(`${JSON.stringify(value, null, space)}  {"next": 1}`);
          const scanner = new JsonScanner(plan, 1 << 20);
          let at = 0;
          while (!scanner.done) {
            const size = sizes.next().value as number;
            at += scanner.feed(bytes.subarray(at, at + size), at);
          }
          expect(scanner.error).toBeNull();
          const plain = JSON.parse(JSON.stringify(value));
          expect(bytes.toString("utf8", 0, at)).toBe(JSON.stringify(value, null, space));
          const element = (start: number, end: number) => JSON.parse(bytes.toString("utf8", start, end));
          const read = (path: string) => {
            const { starts, ends } = scanner.lists.get(path)!;
            return starts.map((start, index) => element(start, ends[index]!));
          };
          expect(read("messages")).toEqual(plain.messages);
          for (const [index, trace] of plain.traces.entries())
            expect(read(`traces.${index}.nodes`)).toEqual(trace.nodes);
          for (const [key, range] of scanner.maps.get("kept")!) expect(element(...range)).toEqual(plain.kept[key]);
          expect(scanner.maps.get("kept")!.size).toBe(Object.keys(plain.kept).length);
          expect(JSON.parse(scanner.text())).toEqual({
            ...plain,
            messages: null,
            kept: null,
            traces: plain.traces.map((trace: object) => ({ ...trace, nodes: null })),
          });
        },
      ),
      { numRuns: 200 },
    );
  });

  it("says where a value ends early", () => {
    const text = '{"messages":[{"a":1},{"b"';
    const scanner = new JsonScanner(compilePlan({ lists: ["messages"] }), 1000);
    scanner.feed(Buffer.from(text), 0);
    scanner.end(text.length);
    expect(scanner.error?.at).toBe(text.length);
    expect(scanner.lists.get("messages")?.count).toBe(1);
  });
});

describe("completeBeginning", () => {
  it("of any beginning of a document is JSON, or nothing", () => {
    fc.assert(
      fc.property(anyJson, fc.double({ min: 0, max: 1, noNaN: true }), spaced, (value, part, space) => {
        const text = JSON.stringify({ first: 1, value, last: [value] }, null, space);
        const cut = text.slice(0, Math.floor(text.length * part));
        const completed = completeBeginning(cut);
        if (cut.includes('"first"') && cut.length > 14) expect(completed).not.toBeNull();
        expect(completeBeginning(text)).toEqual(parseExact(text));
      }),
    );
  });
});
