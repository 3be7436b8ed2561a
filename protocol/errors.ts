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
  OBJECTIVE_INVALID: { retryable: false },
  OBJECTIVE_KEY_MISSING: { retryable: false },
  OBJECTIVE_REFUSED: { retryable: false },
  OBJECTIVE_DEFINITION_MISSING: { retryable: false },
  OBJECTIVE_DEFINITION_INVALID: { retryable: false },
  OBJECTIVE_COLUMN_MISSING: { retryable: false },
  OBJECTIVE_COLUMN_INVALID: { retryable: false },
  OBJECTIVE_STATISTICS_MISSING: { retryable: false },
  OBJECTIVE_OCCURRENCES_WRONG: { retryable: false },
  ADVANTAGES_INVALID: { retryable: false },
  ADVANTAGES_KEY_MISSING: { retryable: false },
  ADVANTAGES_COLUMN_MISSING: { retryable: false },
  ALGORITHM_NON_FINITE: { retryable: false },
  // capture and tokenizer
  TOKENIZER_INVALID: { retryable: false },
  TOKENIZER_UNSUPPORTED: { retryable: false },
  TOKENIZER_ID_UNKNOWN: { retryable: false },
  // store
  // sampling
  // training
  // recipes, data, models
  RECIPE_NOT_FOUND: { retryable: false },
  RECIPE_INVALID: { retryable: false },
  RECIPE_CODE_INVALID: { retryable: false },
  RECIPE_CODE_FAILED: { retryable: false },
  RECIPE_DEFINITION_INVALID: { retryable: false },
  CONFIG_SYNTAX: { retryable: false },
  CONFIG_KEY_UNKNOWN: { retryable: false },
  CONFIG_KEY_MISSING: { retryable: false },
  CONFIG_KEY_UNREAD: { retryable: false },
  CONFIG_VALUE_INVALID: { retryable: false },
  CONFIG_CONFLICT: { retryable: false },
  CONFIG_PROFILE_UNKNOWN: { retryable: false },
  CONFIG_OVERRIDE_INVALID: { retryable: false },
  DATA_FILE_NOT_FOUND: { retryable: false },
  DATA_ROW_INVALID: { retryable: false },
  DATA_EMPTY: { retryable: false },
  MODEL_SOURCE_UNKNOWN: { retryable: false },
  MODEL_NOT_FOUND: { retryable: false },
  MODEL_NETWORK_UNAVAILABLE: { retryable: true },
  MODEL_DOWNLOAD_FAILED: { retryable: true },
  MODEL_HASH_MISMATCH: { retryable: true },
  MODEL_CACHE_FAILED: { retryable: true },
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
