// Verifier for grade-school mathematics in the GSM8K form, where the answer follows the mark `####`.
//
// The rule: the last mark counts, wherever in the text it stands. Its answer is the first number of the first line after it
// that is not blank, beginning with the mark's own; a mark without one is no answer. A text without any mark answers with
// its last number, unless the mark is required.
import { numbersIn, type Reference, referenceNumber } from "./number.ts";

const mark = "####";

export interface Gsm8kOptions {
  /** "preferred": a text without a mark answers with its last number; "required": it has no answer. */
  readonly mark?: "preferred" | "required";
}

/** The answer as an exact decimal, or null. */
export function extractGsm8kAnswer(text: string, options: Gsm8kOptions = {}): string | null {
  const at = text.lastIndexOf(mark);
  if (at >= 0) {
    const rest = text.slice(at + mark.length).trimStart();
    const end = rest.search(/[\r\n]/);
    for (const found of numbersIn(end < 0 ? rest : rest.slice(0, end))) return found.value;
    return null;
  }
  if (options.mark === "required") return null;
  let last: string | null = null;
  for (const found of numbersIn(text)) last = found.value;
  return last;
}

/**
 * 1 when the text's answer is the reference, else 0.
 *
 * @param reference the number, or a whole GSM8K answer with its mark
 * @throws VERIFIER_REFERENCE_INVALID when the reference holds no answer
 */
export function scoreGsm8k(text: string, reference: Reference, options: Gsm8kOptions = {}): number {
  const marked = typeof reference === "string" && reference.includes(mark);
  const expected = (marked ? extractGsm8kAnswer(reference) : null) ?? referenceNumber(reference);
  return extractGsm8kAnswer(text, options) === expected ? 1 : 0;
}
