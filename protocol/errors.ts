// The one error class of the product and the table of its codes. Callers match on `code`, never on text.
// docs/ERRORS.md is written from this table by scripts/generate-docs.mjs; a test compares the two.

/** Trying the same thing again fails again until something is changed. */
function permanent(meaning: string): CodeFacts {
  return { retryable: false, meaning };
}

/** Trying the same thing again can succeed. */
function transient(meaning: string): CodeFacts {
  return { retryable: true, meaning };
}

interface CodeFacts {
  readonly retryable: boolean;
  /** One sentence that holds wherever the code is thrown. */
  readonly meaning: string;
}

/** Every stable code. */
export const errorCodes = {
  // engines
  ENGINE_MODEL_NOT_FOUND: permanent("No model that can be read lies at the path."),
  ENGINE_FILE_TRUNCATED: permanent("A model file ends before the data that its header promises."),
  ENGINE_FILE_INVALID: permanent("A model file breaks its format, or does not fit its configuration."),
  ENGINE_ARCHITECTURE_UNKNOWN: permanent("The engine does not implement this kind of model."),
  ENGINE_TENSOR_TYPE_UNKNOWN: permanent("A tensor is stored in an element type that the engine cannot read."),
  ENGINE_TENSOR_MISSING: permanent("A tensor that the configuration asks for is in no file."),
  ENGINE_SHAPE_MISMATCH: permanent("A tensor has another shape than the configuration says."),
  ENGINE_OUT_OF_MEMORY: permanent("The weights or a batch need more memory than the engine may use."),
  ENGINE_CACHE_TOO_SMALL: permanent("One request needs more positions than the whole key/value cache has."),
  ENGINE_NON_FINITE: permanent("NaN or an infinity turned up in weights, outputs, cotangents or the gradient."),
  ENGINE_CANCELLED: transient("The work was cancelled, or its engine was disposed while it ran."),
  ENGINE_REQUEST_INVALID: permanent("The engine was asked for something that contradicts its interface."),
  ENGINE_MEDIA_UNSUPPORTED: permanent("A message has a part that is not text, or a batch several position axes."),
  ENGINE_UNSUPPORTED: permanent("The model or the call needs a feature that this engine lacks."),
  ENGINE_SAVE_FAILED: transient("A model could not be written to disk."),
  ENGINE_LIBRARY_MISSING: permanent("The native addon is not built, or cannot be loaded."),
  ENGINE_INTERNAL: permanent("The engine failed in a way that it did not foresee: a fault of Rollscope."),
  // algorithms
  OBJECTIVE_INVALID: permanent("The objective block has a wrong value."),
  OBJECTIVE_KEY_MISSING: permanent("The objective block lacks a key that has no default."),
  OBJECTIVE_REFUSED: permanent("The objective block combines keys that must not go together."),
  OBJECTIVE_DEFINITION_MISSING: permanent("objective.kind is custom, but recipe.ts brings no objective."),
  OBJECTIVE_DEFINITION_INVALID: permanent("A recipe's own objective returned something that is no loss."),
  OBJECTIVE_COLUMN_MISSING: permanent("The objective reads numbers that the batch does not have."),
  OBJECTIVE_COLUMN_INVALID: permanent("An array of the batch has the wrong length or unusable numbers."),
  OBJECTIVE_STATISTICS_MISSING: permanent("Cotangents were asked for before the first pass that they depend on."),
  OBJECTIVE_OCCURRENCES_WRONG: permanent("The micro-batches do not hold each occurrence exactly once."),
  ADVANTAGES_INVALID: permanent("The advantages block has a wrong value."),
  ADVANTAGES_KEY_MISSING: permanent("The advantages block lacks a key that has no default."),
  ADVANTAGES_COLUMN_MISSING: permanent("The estimator reads numbers that a trajectory does not have."),
  ALGORITHM_NON_FINITE: permanent("NaN or an infinity reached the mathematics; record, call and token are named."),
  // capture and tokenizer
  TOKENIZER_INVALID: permanent("The tokenizer's files are damaged or contradict each other."),
  TOKENIZER_UNSUPPORTED: permanent("The tokenizer uses a kind or a rule that is not implemented."),
  TOKENIZER_ID_UNKNOWN: permanent("A token id lies outside the vocabulary."),
  TEMPLATE_INVALID: permanent("The chat template cannot be parsed."),
  TEMPLATE_REFUSED: permanent("The chat template itself raised an error about this conversation."),
  TEMPLATE_FAILED: permanent("The chat template computes something that has no value, or calls itself too deeply."),
  CAPTURE_TEMPLATE_MISSING: permanent("The model brings no chat template."),
  CAPTURE_REQUEST_INVALID: permanent("A request is not what the chat API describes."),
  CAPTURE_STREAM_UNSUPPORTED: permanent("A client asked for a stream where none is served."),
  CAPTURE_CONTEXT_OVERFLOW: permanent("Prompt and answer need more positions than the model has."),
  CAPTURE_TURN_LIMIT: permanent("A rollout makes more calls than sampling.maxTurns allows."),
  CAPTURE_SESSION_CLOSED: permanent("A call came after its rollout was over."),
  CAPTURE_CALL_TIMEOUT: transient("A call was not answered within its limit."),
  CAPTURE_CALL_CANCELLED: transient("A call was cancelled; what it had sampled is on record."),
  CAPTURE_ENGINE_FAILED: transient("A call came back from the engine without a finished answer."),
  CONSTRAINT_UNSUPPORTED: permanent("The client asked for constrained output, which this engine cannot keep to."),
  TOOL_FAILED: permanent("A tool that the rollout ran threw; stored with the tool event."),
  // store
  STORE_NETWORK_FILE_SYSTEM: permanent("The record store would lie on a network file system."),
  STORE_UNREACHABLE: transient("The store's files cannot be opened, read or written."),
  STORE_DISK_FULL: permanent("No space is left for the store."),
  STORE_BUSY: transient("Another process holds the record store."),
  STORE_CORRUPT: permanent("The record store is damaged, or the file is no record store."),
  STORE_VERSION_TOO_NEW: permanent("A newer version of Rollscope wrote the record store."),
  STORE_VERSION_TOO_OLD: permanent("An older version of Rollscope wrote the record store."),
  STORE_READ_ONLY: permanent("A write to a store that was opened for reading, or whose file is read-only."),
  STORE_CLOSED: permanent("The store was used after it had been closed."),
  STORE_FAILED: permanent("The store failed in a way that has no code of its own."),
  STORE_DUPLICATE: permanent("A document or a metric of that name exists already."),
  STORE_NOT_FOUND: permanent("There is no document of that id."),
  STORE_CONFLICT: permanent("A record is no longer in the status that the write expected."),
  STORE_TRANSITION_INVALID: permanent("A task or record cannot go from its status to the new one."),
  STORE_LEASE_LOST: permanent("The writer's claim on the record has ended, so its result is refused."),
  STORE_LEASE_TOO_SHORT: permanent("A lease is too short for the accuracy of the clocks."),
  STORE_DOCUMENT_INVALID: permanent("A document does not fit its schema."),
  STORE_DOCUMENT_TOO_LARGE: permanent("A document is larger than a store accepts."),
  STORE_FIELD_INVALID: permanent("A value does not fit the type that taskSchema or recordFields declares."),
  STORE_QUERY_INVALID: permanent("A filter, an order or a page mark is unusable."),
  STORE_COLUMN_INVALID: permanent("A packed token column cannot be read."),
  STORE_BLOB_MISSING: permanent("A document refers to a blob that is not there."),
  STORE_BLOB_CORRUPT: permanent("A blob no longer has the bytes that its hash names."),
  LEDGER_INVALID: permanent("A step consumed something else than was planned: a fault of the loop."),
  // sampling
  SAMPLING_START_TIMEOUT: transient("A rollout made no first call within sampling.startTimeout."),
  SAMPLING_CALL_GAP_TIMEOUT: transient("A rollout made no further call within sampling.callGapTimeout."),
  SAMPLING_ROLLOUT_TIMEOUT: transient("A rollout was not over after sampling.rolloutTimeout."),
  SAMPLING_EVALUATE_TIMEOUT: transient("evaluate was not done after sampling.evaluateTimeout."),
  SAMPLING_ROLLOUT_FAILED: transient("The recipe's rollout threw."),
  SAMPLING_EVALUATE_FAILED: permanent("The recipe's evaluate threw."),
  SAMPLING_SCORE_INVALID: permanent("evaluate returned something that is no score."),
  SAMPLING_CANCELLED: transient("A record was given up because its rollout or its attempt ended."),
  SAMPLING_GROUP_DECIDED: permanent("A rollout was not over when its group's deadline passed."),
  SAMPLING_NOTHING_USABLE: permanent("No group of a window has enough graded records to train on."),
  SAMPLING_MISMATCH: permanent("Sampler and trainer disagree before any update by more than the limit."),
  // training
  TRAINING_TRAJECTORY_INVALID: permanent("The arrays of a trajectory contradict each other."),
  TRAINING_PATH_TOO_LONG: permanent("One trajectory alone exceeds the token budget of a micro-batch."),
  TRAINING_NON_FINITE: permanent("A score or a number of the engine is NaN or infinite; the token is named."),
  TRAINING_GRADIENT_NON_FINITE: permanent("A step was skipped because its gradient was not finite."),
  TRAINING_NO_TRAINABLE_TOKENS: permanent("A step was skipped because its batch had no token to train."),
  TRAINING_SETUP_INVALID: permanent("Objective or estimator need a model part that the run does not have."),
  TRAINING_REPLAY_INVALID: permanent("A file is no step that can be replayed."),
  CHECKPOINT_DISK_FULL: transient("The disk was full when a checkpoint was written; older ones are whole."),
  CHECKPOINT_WRITE_FAILED: transient("A checkpoint could not be written; older ones are whole."),
  CHECKPOINT_INVALID: permanent("A checkpoint is damaged, or belongs to another model."),
  // recipes, data, models
  RECIPE_NOT_FOUND: permanent("There is no recipe.yaml, or no recipe.ts beside it."),
  RECIPE_INVALID: permanent("A recipe has problems and was not started; each is listed with its place."),
  RECIPE_CODE_INVALID: permanent("recipe.ts cannot be compiled, or has type errors."),
  RECIPE_CODE_FAILED: permanent(
    "recipe.ts threw while it was imported, called process.exit(), or threw outside of any rollout.",
  ),
  RECIPE_NAME_INVALID: permanent("A name cannot be that of a recipe."),
  RECIPE_FOLDER_TAKEN: permanent("The folder that a new recipe would get is there already, and not empty."),
  RECIPE_FOLDER_UNWRITABLE: transient("The folder of a new recipe cannot be written."),
  RECIPE_DEFINITION_INVALID: permanent("The default export of recipe.ts is no recipe."),
  DOCTOR_FAILED: transient("The self-check ended before it was done."),
  INSTALLATION_INCOMPLETE: permanent("A file that comes with Rollscope is missing."),
  CONFIG_FILE_UNREADABLE: permanent("A configuration file that is to be translated cannot be read."),
  CONFIG_SYNTAX: permanent("A configuration file, recipe.yaml or one to translate, cannot be understood."),
  CONFIG_KEY_UNKNOWN: permanent("There is no key of that name; the nearest one is named."),
  CONFIG_KEY_MISSING: permanent("A key without a default is missing."),
  CONFIG_KEY_UNREAD: permanent("A key was written that nothing reads in this configuration."),
  CONFIG_VALUE_INVALID: permanent("A key has a value of the wrong type or out of bounds."),
  CONFIG_CONFLICT: permanent("Two keys contradict each other."),
  CONFIG_ADVICE: permanent("Good to know about this configuration; the run starts all the same."),
  CONFIG_PROFILE_UNKNOWN: permanent("The recipe has no profile of that name."),
  CONFIG_OVERRIDE_INVALID: permanent("An override has no value, or does not name a key."),
  DATA_FILE_NOT_FOUND: permanent("A task file does not exist or cannot be read."),
  DATA_ROW_INVALID: permanent("A row of a task file is unusable; file and line are named."),
  DATA_EMPTY: permanent("A task file has no rows, or the held-out choice leaves none to train on."),
  VERIFIER_REFERENCE_INVALID: permanent("The right answer of a task is empty, or not one number."),
  MODEL_SOURCE_UNKNOWN: permanent("model.source names no source that is known."),
  MODEL_NOT_FOUND: permanent("No model or file is there under that path, id or revision."),
  MODEL_NETWORK_UNAVAILABLE: transient("The server of a model or file cannot be reached."),
  MODEL_DOWNLOAD_FAILED: transient("A download broke off; the next try goes on from there."),
  MODEL_HASH_MISMATCH: transient("What arrived is not the file that was announced; it was deleted."),
  MODEL_CACHE_FAILED: transient("The cache cannot be written."),
  // import and export
  IMPORT_FILE_UNREADABLE: permanent("A file of trajectories does not exist, or may not be read."),
  IMPORT_FORMAT_UNKNOWN: permanent("A file is in no format of trajectories that is known."),
  IMPORT_FILE_INVALID: permanent("A zip, table or archive is damaged or incomplete."),
  IMPORT_ROW_INVALID: permanent("A record of a file cannot be read; file and place are named, the others are read."),
  IMPORT_TRAJECTORY_UNKNOWN: permanent("A file has no trajectory of that number."),
  IMPORT_CANCELLED: transient("Reading a file was cancelled."),
  EXPORT_FAILED: permanent("An export could not be written."),
  EXPORT_NOTHING: permanent("The run has nothing of the kind that was to be exported."),
  // runs and command line
  RUN_NOT_FOUND: permanent("There is no run of that name or path."),
  RUN_AMBIGUOUS: permanent("Several runs begin with that name."),
  RUN_ACTIVE: transient("A process is running the run already."),
  RUN_NOT_ACTIVE: permanent("No process is running the run."),
  RUN_UNANSWERED: transient("The process of a run is there, but does not answer commands: it stands still."),
  RUN_NOT_RESUMABLE: permanent("The run is complete, or its task files changed since it began."),
  RUN_FOLDER_INVALID: permanent("A file of the run's folder is missing or unreadable."),
  RUN_FOLDER_UNWRITABLE: transient("The run's folder or journal cannot be written."),
  RUN_CONTROL_REFUSED: permanent("A command to a running run was not accepted."),
  RUN_STOPPED: transient("The run, or a download, was stopped on request."),
  RUN_FAILED: permanent("The run ended with an error that has no code: a fault of Rollscope."),
  RUN_START_FAILED: permanent("The process of a run ended before the run began; what it wrote is in the message."),
  JOURNAL_INVALID: permanent("The journal ended in the middle of a line, which was cut off."),
  RECORD_NOT_FOUND: permanent("The run has no record of that id."),
  TRAJECTORY_TURN_UNKNOWN: permanent("A view asked for a turn that the trajectory does not have."),
  COMMAND_INVALID: permanent("An argument of the command line is wrong."),
  // daemon
  DAEMON_RUNNING: permanent("A daemon of this user is running on this machine already."),
  DAEMON_UNREACHABLE: transient("No daemon answers, or the connection to it was lost."),
  DAEMON_START_FAILED: transient("The daemon could not be started; its log says why."),
  DAEMON_HOME_UNUSABLE: permanent("The daemon's folder cannot be made private to its user, or cannot be written."),
  DAEMON_VERSION_MISMATCH: permanent("Client and daemon speak different versions of the protocol."),
  DAEMON_REQUEST_INVALID: permanent("A client called a method with parameters that do not fit: a fault of the client."),
  DAEMON_METHOD_UNKNOWN: permanent("A client called a method that the daemon does not have."),
  DAEMON_METHOD_UNAVAILABLE: permanent("A client called a method that this build of the daemon lacks."),
  DAEMON_FAILED: permanent("A method of the daemon failed in a way that has no code: a fault of Rollscope."),
  DAEMON_BUSY: transient("A client asked for more bulk frames than its connection took off."),
  SUPERVISOR_HELPER_MISSING: permanent("The program that starts and watches runs has not been built."),
  PAGES_MISSING: permanent("The bundles of the pages are not beside the program."),
  PAGE_HOST_UNSUPPORTED: permanent("A page asked its host for something that a plain browser does by itself."),
  // editor
  PAYLOAD_NOT_FOUND: permanent("The editor found no payload: the program that the daemon and runs consist of."),
  PAYLOAD_INVALID: permanent("What was chosen as the payload holds none."),
  NODE_NOT_FOUND: permanent("No Node that is new enough can be run."),
  WORKSPACE_UNTRUSTED: permanent("The editor does not trust the folder, so nothing of it may run."),
  DEBUG_ATTACH_FAILED: transient("The editor's debugger could not attach to a run."),
  EXTENSION_FAILED: permanent("The extension failed in a way that has no code of its own: a fault of Rollscope."),
} as const satisfies Record<string, CodeFacts>;

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
