// Sessions on a test engine: a small byte-level tokenizer whose tokens are chosen by the test, a ChatML template, and the
// pieces put together the way a run does.

import type { OpenSessionOptions } from "../../agent-daemon/src/capture/openSession.ts";
import { captureModel, openCaptureSession } from "../../agent-daemon/src/capture/openSession.ts";
import type { CaptureSettings } from "../../agent-daemon/src/capture/session.ts";
import { byteCharacters } from "../../agent-daemon/src/engines/tokenizer/byteLevel.ts";
import { definitionFromJson } from "../../agent-daemon/src/engines/tokenizer/definition.ts";
import type { ModelText } from "../../agent-daemon/src/engines/tokenizer/load.ts";
import { Tokenizer } from "../../agent-daemon/src/engines/tokenizer/tokenizer.ts";
import { type Answer, ScriptedEngine } from "./scriptedEngine.ts";

export const chatMl =
  "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/** All bytes, the specials, and whatever `merges` make ("l o" makes the token lo). */
export function toyTokenizer(merges: readonly string[] = []): Tokenizer {
  const tokens = [...byteCharacters, ...merges.map((merge) => merge.replace(" ", ""))];
  const specials = ["<|im_start|>", "<|im_end|>"];
  return new Tokenizer(
    definitionFromJson(
      {
        added_tokens: specials.map((content, index) => ({ id: tokens.length + index, content, special: true })),
        normalizer: null,
        pre_tokenizer: { type: "ByteLevel", add_prefix_space: false },
        post_processor: null,
        decoder: { type: "ByteLevel" },
        model: {
          type: "BPE",
          vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
          merges: merges.map((merge) => merge.split(" ")),
        },
      },
      "the toy tokenizer",
    ),
  );
}

export function toyModel(tokenizer = toyTokenizer(), chatTemplate: string = chatMl): ModelText {
  return {
    source: "toy",
    tokenizer,
    chatTemplate,
    specialTokens: {},
    stopIds: [tokenizer.idOf("<|im_end|>") as number],
  };
}

export const defaultSettings: CaptureSettings = {
  maxNewTokens: 64,
  maxTurns: null,
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  stop: [],
  history: "exact",
  callLimit: null,
  verifyFraction: 0,
};

export interface ToySessionOptions extends Partial<Omit<OpenSessionOptions, "settings" | "model">> {
  readonly text?: ModelText;
  readonly settings?: Partial<CaptureSettings>;
  readonly answer?: Answer;
  readonly maxPositions?: number;
  /** The clock of the template. */
  readonly templateNow?: () => Date;
}

/** A session whose answers are what `answer` emits, what `script` says, or drawn by the engine. */
export function toySession(options: ToySessionOptions = {}) {
  const text = options.text ?? toyModel();
  const engine = new ScriptedEngine({
    vocabularySize: text.tokenizer.vocabularySize,
    ...(options.maxPositions === undefined ? {} : { maxPositions: options.maxPositions }),
    ...(options.answer ? { answer: options.answer } : {}),
  });
  const session = openCaptureSession({
    record: "r0",
    key: { seed: 1, record: 2 },
    agentSeed: 3,
    signal: new AbortController().signal,
    truncated: "keep",
    store: null,
    ...options,
    settings: { ...defaultSettings, ...options.settings },
    model: captureModel(engine, text, options.templateNow ? { now: options.templateNow } : {}),
  });
  return { ...session, engine, tokenizer: text.tokenizer };
}

/** Answers from a list of texts, one a call. */
export function scriptOf(...texts: readonly string[]) {
  return ({ index }: { readonly index: number }): string | null => texts[index] ?? null;
}
