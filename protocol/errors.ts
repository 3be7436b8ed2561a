// The one error class of the product and the table of its codes. Callers match on `code`, never on text.
// docs/ERRORS.md lists every code; a test compares the two.

/** Every stable code, with whether trying the same thing again can succeed without a change. */
export const errorCodes = {
  // engines
  ENGINE_MODEL_NOT_FOUND: { retryable: false },
  ENGINE_FILE_TRUNCATED: { retryable: false },
  ENGINE_FILE_INVALID: { retryable: false },
  ENGINE_ARCHITECTURE_UNKNOWN: { retryable: false },
  ENGINE_TENSOR_TYPE_UNKNOWN: { retryable: false },
  ENGINE_TENSOR_MISSING: { retryable: false },
  ENGINE_SHAPE_MISMATCH: { retryable: false },
  ENGINE_OUT_OF_MEMORY: { retryable: false },
  ENGINE_NON_FINITE: { retryable: false },
  ENGINE_CANCELLED: { retryable: true },
  ENGINE_REQUEST_INVALID: { retryable: false },
  ENGINE_MEDIA_UNSUPPORTED: { retryable: false },
  ENGINE_UNSUPPORTED: { retryable: false },
  ENGINE_INTERNAL: { retryable: false },
  // algorithms
  // capture and tokenizer
  // store
  // sampling
  // training
  // recipes, data, models
  // runs and command line
} as const satisfies Record<string, { retryable: boolean }>;

export type ErrorCode = keyof typeof errorCodes;

export interface ErrorDetails {
  /** What the person can do now, as a sentence. */
  readonly next: string;
  readonly cause?: unknown;
  /** File, line, key, record, call, token: whatever names the place. */
  readonly at?: Readonly<Record<string, string | number>>;
}

export class RollscopeError extends Error {
  readonly code: ErrorCode;
  readonly next: string;
  readonly at: Readonly<Record<string, string | number>>;

  constructor(code: ErrorCode, sentence: string, details: ErrorDetails) {
    super(sentence, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "RollscopeError";
    this.code = code;
    this.next = details.next;
    this.at = details.at ?? {};
  }

  get retryable(): boolean {
    return errorCodes[this.code].retryable;
  }
}
