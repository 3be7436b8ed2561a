import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { StopScanner } from "../../agent-daemon/src/capture/stopStrings.ts";
import { toyModel, toySession, toyTokenizer } from "../support/captured.ts";

const pieces = ["sum is 9", "\nOb", "Ob", "s", ":", " extra", "\n", "jects"];

/** A tokenizer whose tokens are the pieces of the case, so that a stop string falls apart as the case says. */
function modelOf(parts: readonly string[]) {
  const merges: string[] = [];
  for (const part of parts) {
    const mapped = part.replaceAll(" ", "Ġ").replaceAll("\n", "Ċ");
    for (let length = 2; length <= mapped.length; length++) {
      const merge = `${mapped.slice(0, length - 1)} ${mapped[length - 1]}`;
      if (!merges.includes(merge)) merges.push(merge);
    }
  }
  const tokenizer = toyTokenizer(merges);
  const idOf = (text: string) => tokenizer.idOf(text.replaceAll(" ", "Ġ").replaceAll("\n", "Ċ")) as number;
  return { text: toyModel(tokenizer), idOf, end: tokenizer.idOf("<|im_end|>") as number };
}

describe("a stop string split over tokens (P01)", () => {
  const { text, idOf, end } = modelOf(pieces);
  const run = async (...parts: string[]) => {
    const session = toySession({
      text,
      answer: () => [...parts.map((part) => ({ ids: [idOf(part)] })), { ids: [end] }],
      settings: { stop: ["\nObs:"] },
    });
    const result = await session.agent.chat({ messages: [{ role: "user", content: "q" }] });
    const stream = new StopScanner(["\nObs:"]);
    let shown = "";
    for (const part of parts) {
      shown += stream.push(part);
      expect("sum is 9\nObjects".startsWith(shown)).toBe(true);
    }
    return { result, call: session.captured()[0]!, streamed: shown + stream.flush(), session };
  };

  test("ends the text right before it, in a stream and whole, with every sampled id on record", async () => {
    const { result, call, streamed } = await run("sum is 9", "\n", "Ob", "s", ":", " extra");
    expect(result).toMatchObject({ text: "sum is 9", finishReason: "stop" });
    expect(streamed).toBe("sum is 9");
    expect([...call.output]).toEqual(["sum is 9", "\n", "Ob", "s", ":"].map(idOf));
    expect(call.logprobs.length).toBe(call.output.length);
  });

  test("keeps ids and log-probabilities aligned when the rest comes in the same chunk", async () => {
    const session = toySession({
      text,
      answer: () => [{ ids: ["sum is 9", "\n", "Ob", "s", ":", " extra"].map(idOf) }, { ids: [end] }],
      settings: { stop: ["\nObs:"] },
    });
    const result = await session.agent.chat({ messages: [{ role: "user", content: "q" }] });
    const [call] = session.captured();
    expect(result.text).toBe("sum is 9");
    expect(call!.output.length).toBe(6);
    expect(call!.logprobs.length).toBe(6);
    expect(call!.versions).toEqual([{ version: 0, length: 6 }]);
  });

  test("comes out whole when it was only nearly one", async () => {
    const { result, streamed } = await run("sum is 9", "\n", "Ob", "jects");
    expect(result.text).toBe("sum is 9\nObjects");
    expect(streamed).toBe("sum is 9\nObjects");
  });

  test("stays in the history as it was sampled, with the template's end behind it", async () => {
    const { result, session } = await run("sum is 9", "\n", "Ob", "s", ":");
    await session.agent.chat({
      messages: [{ role: "user", content: "q" }, result.message, { role: "user", content: "r" }],
    });
    expect(session.tokenizer.decode(session.engine.requests[1]!.tokens)).toContain(
      "assistant\nsum is 9\nObs:<|im_end|>\n<|im_start|>user\nr<|im_end|>\n",
    );
    expect(session.captured()[1]!.drift).toMatchObject({ kind: "template", trainedTokens: 0 });
  });
});

test("whatever the pieces, the text shown is the text before the first stop string", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "\n"), maxLength: 30 });
  const stops = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "\n"), minLength: 1, maxLength: 4 }), {
    maxLength: 3,
  });
  fc.assert(
    fc.property(letters, stops, fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 30 }), (text, all, sizes) => {
      const scanner = new StopScanner(all);
      let shown = "";
      let at = 0;
      for (const size of [...sizes, text.length]) {
        const piece = text.slice(at, at + size);
        at += size;
        shown += scanner.push(piece);
        expect(text.startsWith(shown)).toBe(true);
      }
      shown += scanner.flush();
      // The stop string that is complete first ends the text; one that began earlier but was not complete does not.
      const ends = all.map((stop) => ({ stop, at: text.indexOf(stop) })).filter((found) => found.at >= 0);
      if (ends.length === 0) {
        expect(shown).toBe(text);
        expect(scanner.stoppedBy).toBeNull();
        return;
      }
      expect(scanner.stoppedBy).not.toBeNull();
      expect(ends.some((found) => shown === text.slice(0, found.at))).toBe(true);
    }),
  );
});
