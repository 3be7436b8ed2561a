// Decodes tokens one at a time and shows only whole characters: an unfinished UTF-8 sequence waits for the next token.

/** What a stream decoder asks of its tokenizer. */
export interface TokenAlphabet {
  tokenBytes(id: number): Uint8Array;
  isSpecial(id: number): boolean;
}

export interface StreamDecoderOptions {
  readonly skipSpecial: boolean;
  readonly stripsLeadingSpace: boolean;
}

export class StreamDecoder {
  private readonly alphabet: TokenAlphabet;
  private readonly options: StreamDecoderOptions;
  /** WHATWG rule for bad bytes; a byte-order mark is text. */
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  private waiting = false;
  private atStart = true;

  constructor(alphabet: TokenAlphabet, options: StreamDecoderOptions) {
    this.alphabet = alphabet;
    this.options = options;
  }

  /** The text this token completes; "" when all of it is held back. */
  push(id: number): string {
    if (this.alphabet.isSpecial(id)) {
      const before = this.flush();
      this.atStart = false;
      return this.options.skipSpecial ? before : before + new TextDecoder().decode(this.alphabet.tokenBytes(id));
    }
    const bytes = this.alphabet.tokenBytes(id);
    if (bytes.length === 0) return "";
    const strip = this.atStart && this.options.stripsLeadingSpace && bytes[0] === 0x20;
    this.atStart = false;
    this.waiting = true;
    return this.decoder.decode(strip ? bytes.subarray(1) : bytes, { stream: true });
  }

  /** What was held back, as U+FFFD; the decoder can be used on. */
  flush(): string {
    if (!this.waiting) return "";
    this.waiting = false;
    return this.decoder.decode();
  }
}
