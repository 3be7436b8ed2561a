// Verifier for answers that must be given word for word.
//
// The rule: both sides are compared in Unicode's composed form, without white space at the ends and with every run of white
// space inside read as one space. Case counts unless told otherwise.

export interface ExactMatchOptions {
  readonly ignoreCase?: boolean;
}

function normalize(text: string, options: ExactMatchOptions): string {
  const folded = options.ignoreCase === true ? text.toLowerCase() : text;
  return folded.normalize("NFC").trim().split(/\s+/u).join(" ");
}

/** 1 when the text is one of the references, else 0. An empty list of references matches nothing. */
export function scoreExactMatch(
  text: string,
  references: string | readonly string[],
  options: ExactMatchOptions = {},
): number {
  const given = normalize(text, options);
  const accepted = typeof references === "string" ? [references] : references;
  return accepted.some((reference) => normalize(reference, options) === given) ? 1 : 0;
}
