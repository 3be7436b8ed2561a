// Text to token ids and back, exactly. Encoding is the library's; decoding is done on bytes here, so that a whole text and a
// stream of its tokens can never differ. It must never add or drop special tokens on its own.
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { byteLevelBytes } from "./byteLevel.ts";
import type { TokenizerDefinition } from "./definition.ts";
import { StreamDecoder } from "./streamDecoder.ts";

export interface EncodeOptions {
  /** "parse": text that spells a special token becomes it. "plain": it stays ordinary text. */
  readonly special: "parse" | "plain";
}

export interface DecodeOptions {
  readonly skipSpecial?: boolean;
}

export class Tokenizer {
  /** Number of ids: one more than the largest. Some may have no token. */
  readonly vocabularySize: number;
  readonly specialIds: ReadonlySet<number>;
  private readonly definition: TokenizerDefinition;
  private readonly library: LibraryTokenizer;
  private readonly addedIds: ReadonlyMap<number, string>;
  private readonly bytes = new Map<number, Uint8Array>();
  private plain: LibraryTokenizer | undefined;

  constructor(definition: TokenizerDefinition) {
    this.definition = definition;
    this.library = build(definition, definition.library);
    this.addedIds = new Map(definition.addedTokens.map((token) => [token.id, token.content]));
    this.specialIds = new Set(definition.addedTokens.filter((token) => token.special).map((token) => token.id));
    let largest = -1;
    for (const id of definition.vocabulary.values()) largest = Math.max(largest, id);
    for (const id of this.addedIds.keys()) largest = Math.max(largest, id);
    this.vocabularySize = largest + 1;
  }

  /** Adds neither a beginning-of-text nor an end token. */
  encode(text: string, options: EncodeOptions): number[] {
    if (text === "") return [];
    const library = options.special === "parse" ? this.library : this.withoutSpecial();
    return library.encode(text, { add_special_tokens: false }).ids;
  }

  /** Bad bytes become U+FFFD by the WHATWG rule; a special token ends whatever character is unfinished. */
  decode(ids: Iterable<number>, options: DecodeOptions = {}): string {
    const stream = this.stream(options);
    let text = "";
    for (const id of ids) text += stream.push(id);
    return text + stream.flush();
  }

  /** A decoder for tokens as they arrive. */
  stream(options: DecodeOptions = {}): StreamDecoder {
    return new StreamDecoder(this, {
      skipSpecial: options.skipSpecial ?? false,
      stripsLeadingSpace: this.definition.stripsLeadingSpace,
    });
  }

  isSpecial(id: number): boolean {
    return this.specialIds.has(id);
  }

  /** The id of a token by its exact text in the vocabulary or among the added tokens. */
  idOf(token: string): number | undefined {
    return this.library.token_to_id(token);
  }

  /** The token as the vocabulary spells it. Errors: TOKENIZER_ID_UNKNOWN. */
  tokenText(id: number): string {
    const text = this.library.id_to_token(id);
    if (text === undefined) {
      throw new RollscopeError("TOKENIZER_ID_UNKNOWN", `There is no token with the id ${id}.`, {
        next: `Use ids from 0 to ${this.vocabularySize - 1}; check that the model and the tokenizer belong together.`,
        at: { token: id, file: this.definition.source },
      });
    }
    return text;
  }

  /** What the token adds to the text, in bytes; a special or added token its own text in UTF-8. Errors: TOKENIZER_ID_UNKNOWN. */
  tokenBytes(id: number): Uint8Array {
    const known = this.bytes.get(id);
    if (known) return known;
    const text = this.tokenText(id);
    const bytes = this.addedIds.has(id) ? new TextEncoder().encode(text) : this.ordinaryBytes(text);
    this.bytes.set(id, bytes);
    return bytes;
  }

  private ordinaryBytes(text: string): Uint8Array {
    if (this.definition.alphabet === "byte-level") return byteLevelBytes(text);
    const fallback = /^<0x([0-9A-Fa-f]{2})>$/.exec(text);
    if (fallback) return Uint8Array.of(Number.parseInt(fallback[1] ?? "", 16));
    return new TextEncoder().encode(text.replaceAll("▁", " "));
  }

  /** The same model and rules without the special tokens, so that their text is cut up like any other. */
  private withoutSpecial(): LibraryTokenizer {
    if (this.plain) return this.plain;
    const plain = build(this.definition, {
      ...this.definition.library,
      added_tokens: this.definition.addedTokens.filter((token) => !token.special),
      model: { type: "BPE", vocab: {}, merges: [] },
    });
    // The vocabulary is large: both share one model.
    plain.model = this.library.model;
    this.plain = plain;
    return plain;
  }
}

function build(definition: TokenizerDefinition, json: object): LibraryTokenizer {
  try {
    return new LibraryTokenizer(json, { clean_up_tokenization_spaces: false });
  } catch (cause) {
    throw new RollscopeError("TOKENIZER_INVALID", `The tokenizer of ${definition.source} cannot be built.`, {
      next: "Fetch the model again; its tokenizer.json is damaged or uses a rule that is not supported.",
      at: { file: definition.source },
      cause,
    });
  }
}
