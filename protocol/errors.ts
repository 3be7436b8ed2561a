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
  ENGINE_CACHE_TOO_SMALL: { retryable: false },
  ENGINE_NON_FINITE: { retryable: false },
  ENGINE_CANCELLED: { retryable: true },
  ENGINE_REQUEST_INVALID: { retryable: false },
  ENGINE_MEDIA_UNSUPPORTED: { retryable: false },
  ENGINE_UNSUPPORTED: { retryable: false },
  ENGINE_SAVE_FAILED: { retryable: true },
  ENGINE_LIBRARY_MISSING: { retryable: false },
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
  TEMPLATE_INVALID: { retryable: false },
  TEMPLATE_REFUSED: { retryable: false },
  TEMPLATE_FAILED: { retryable: false },
  CAPTURE_TEMPLATE_MISSING: { retryable: false },
  CAPTURE_REQUEST_INVALID: { retryable: false },
  CAPTURE_STREAM_UNSUPPORTED: { retryable: false },
  CAPTURE_CONTEXT_OVERFLOW: { retryable: false },
  CAPTURE_TURN_LIMIT: { retryable: false },
  CAPTURE_SESSION_CLOSED: { retryable: false },
  CAPTURE_CALL_TIMEOUT: { retryable: true },
  CAPTURE_CALL_CANCELLED: { retryable: true },
  CAPTURE_ENGINE_FAILED: { retryable: true },
  CONSTRAINT_UNSUPPORTED: { retryable: false },
  TOOL_FAILED: { retryable: false },
  // store
  STORE_NETWORK_FILE_SYSTEM: { retryable: false },
  STORE_UNREACHABLE: { retryable: true },
  STORE_DISK_FULL: { retryable: false },
  STORE_BUSY: { retryable: true },
  STORE_CORRUPT: { retryable: false },
  STORE_VERSION_TOO_NEW: { retryable: false },
  STORE_VERSION_TOO_OLD: { retryable: false },
  STORE_READ_ONLY: { retryable: false },
  STORE_CLOSED: { retryable: false },
  STORE_FAILED: { retryable: false },
  STORE_DUPLICATE: { retryable: false },
  STORE_NOT_FOUND: { retryable: false },
  STORE_CONFLICT: { retryable: false },
  STORE_TRANSITION_INVALID: { retryable: false },
  STORE_LEASE_LOST: { retryable: false },
  STORE_LEASE_TOO_SHORT: { retryable: false },
  STORE_DOCUMENT_INVALID: { retryable: false },
  STORE_DOCUMENT_TOO_LARGE: { retryable: false },
  STORE_FIELD_INVALID: { retryable: false },
  STORE_QUERY_INVALID: { retryable: false },
  STORE_COLUMN_INVALID: { retryable: false },
  STORE_BLOB_MISSING: { retryable: false },
  STORE_BLOB_CORRUPT: { retryable: false },
  LEDGER_INVALID: { retryable: false },
  // sampling
  SAMPLING_START_TIMEOUT: { retryable: true },
  SAMPLING_CALL_GAP_TIMEOUT: { retryable: true },
  SAMPLING_ROLLOUT_TIMEOUT: { retryable: true },
  SAMPLING_EVALUATE_TIMEOUT: { retryable: true },
  SAMPLING_ROLLOUT_FAILED: { retryable: true },
  SAMPLING_EVALUATE_FAILED: { retryable: false },
  SAMPLING_SCORE_INVALID: { retryable: false },
  SAMPLING_CANCELLED: { retryable: true },
  SAMPLING_GROUP_DECIDED: { retryable: false },
  SAMPLING_NOTHING_USABLE: { retryable: false },
  SAMPLING_MISMATCH: { retryable: false },
  // training
  TRAINING_TRAJECTORY_INVALID: { retryable: false },
  TRAINING_PATH_TOO_LONG: { retryable: false },
  TRAINING_NON_FINITE: { retryable: false },
  TRAINING_GRADIENT_NON_FINITE: { retryable: false },
  TRAINING_NO_TRAINABLE_TOKENS: { retryable: false },
  TRAINING_SETUP_INVALID: { retryable: false },
  TRAINING_REPLAY_INVALID: { retryable: false },
  CHECKPOINT_DISK_FULL: { retryable: true },
  CHECKPOINT_WRITE_FAILED: { retryable: true },
  CHECKPOINT_INVALID: { retryable: false },
  CHECKPOINT_NOT_FOUND: { retryable: false },
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
  VERIFIER_REFERENCE_INVALID: { retryable: false },
  MODEL_SOURCE_UNKNOWN: { retryable: false },
  MODEL_NOT_FOUND: { retryable: false },
  MODEL_NETWORK_UNAVAILABLE: { retryable: true },
  MODEL_DOWNLOAD_FAILED: { retryable: true },
  MODEL_HASH_MISMATCH: { retryable: true },
  MODEL_CACHE_FAILED: { retryable: true },
  // runs and command line
  RUN_NOT_FOUND: { retryable: false },
  RUN_AMBIGUOUS: { retryable: false },
  RUN_ACTIVE: { retryable: true },
  RUN_NOT_ACTIVE: { retryable: false },
  RUN_NOT_RESUMABLE: { retryable: false },
  RUN_FOLDER_INVALID: { retryable: false },
  RUN_FOLDER_UNWRITABLE: { retryable: true },
  RUN_CONTROL_REFUSED: { retryable: false },
  RUN_STOPPED: { retryable: true },
  RUN_FAILED: { retryable: false },
  JOURNAL_INVALID: { retryable: false },
  RECORD_NOT_FOUND: { retryable: false },
  COMMAND_INVALID: { retryable: false },
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
