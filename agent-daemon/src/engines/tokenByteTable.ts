// The bytes of every token in one table, the form in which the engine matches stop strings.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { Tokenizer } from "./tokenizer/tokenizer.ts";

export interface TokenByteTable {
  readonly bytes: Uint8Array;
  /** [ids + 1] Token i is bytes [offsets[i], offsets[i + 1]). */
  readonly offsets: Uint32Array;
}

/** Ids without a token add no bytes. */
export function tokenByteTable(tokenizer: Tokenizer): TokenByteTable {
  const offsets = new Uint32Array(tokenizer.vocabularySize + 1);
  const parts: Uint8Array[] = [];
  let total = 0;
  for (let id = 0; id < tokenizer.vocabularySize; id++) {
    offsets[id] = total;
    const part = bytesOf(tokenizer, id);
    parts.push(part);
    total += part.length;
  }
  offsets[tokenizer.vocabularySize] = total;
  const bytes = new Uint8Array(total);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return { bytes, offsets };
}

function bytesOf(tokenizer: Tokenizer, id: number): Uint8Array {
  try {
    return tokenizer.tokenBytes(id);
  } catch (error) {
    // Vocabularies have gaps; an id without a token adds nothing to the text.
    if (error instanceof RollscopeError && error.code === "TOKENIZER_ID_UNKNOWN") return new Uint8Array(0);
    throw error;
  }
}
