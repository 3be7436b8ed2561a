// What the product needs from a store, in terms that a SQLite file and a document server can both keep: documents by id,
// inserts decided by unique keys, conditional updates of one document. Nothing here may need a transaction over several
// documents: a step is committed by its one insert, a claim is one insert, and what has no committed step is void.
import type { CallDocument } from "../../../protocol/call.ts";
import type { BlobHash } from "../../../protocol/column.ts";
import type { RollscopeError } from "../../../protocol/errors.ts";
import type { FieldType } from "../../../protocol/recipePlace.ts";
import type {
  LeaseDocument,
  LeaseKey,
  RecordDocument,
  RecordStatus,
  TaskDocument,
  TaskStatus,
  ToolEventDocument,
} from "../../../protocol/record.ts";
import type { RecordDataDocument } from "../../../protocol/recordData.ts";
import type { Metrics, PlanDocument, StepDocument } from "../../../protocol/step.ts";

export interface Range {
  /** Inclusive. */
  readonly min?: number;
  readonly max?: number;
}

export type OneOf<T> = T | readonly T[];

export interface PageRequest<Order extends string = never> {
  /** What to sort by; documents that have no such number are left out. Default: the order in which they were created. */
  readonly order?: Order | "created";
  readonly descending?: boolean;
  /** At most this many documents; default 100. */
  readonly limit?: number;
  /** `next` of the page before, with the same filter and order. */
  readonly after?: string;
}

export interface Page<D> {
  readonly items: readonly D[];
  /** Give it back as `after`; null on the last page. */
  readonly next: string | null;
  /** Name of the index that answered; "none" when every document was looked at. */
  readonly index: string;
}

export interface Count {
  readonly count: number;
  readonly index: string;
}

export interface Collection<D, Filter, Order extends string = never> {
  /**
   * Adds documents. Throws STORE_DUPLICATE when an id is taken (the stored document stays as it is); the others are added all
   * the same, so that an insert whose answer was lost can be repeated.
   */
  insert(documents: readonly D[]): Promise<void>;
  /** The documents that exist among `ids`, by id. */
  get(ids: readonly string[]): Promise<Map<string, D>>;
  query(filter: Filter, page?: PageRequest<Order>): Promise<Page<D>>;
  count(filter: Filter): Promise<Count>;
}

export interface Update<Set> {
  readonly id: string;
  /** New values of top-level keys. */
  readonly set: Set;
}

/** One entry per update, in order: null when it was made, else why not (STORE_NOT_FOUND, STORE_TRANSITION_INVALID …). */
export type UpdateResults = readonly (RollscopeError | null)[];

export type TaskSet = Partial<Pick<TaskDocument, "status" | "scores">>;

export interface TaskFilter {
  readonly run?: string;
  readonly split?: TaskDocument["split"];
  readonly epoch?: number;
  readonly name?: string;
  readonly index?: OneOf<number>;
  readonly status?: OneOf<TaskStatus>;
}

export interface TaskCollection extends Collection<TaskDocument, TaskFilter, "index"> {
  update(updates: readonly Update<TaskSet>[]): Promise<UpdateResults>;
}

export type RecordSet = Partial<
  Omit<RecordDocument, "id" | "run" | "task" | "sample" | "resample" | "split" | "created">
>;

export interface RecordUpdate extends Update<RecordSet> {
  /** Only if the record has this status now (besides what the status transitions ask for); else STORE_CONFLICT. */
  readonly whenStatus?: OneOf<RecordStatus>;
  /** Only if this lease is the record's newest, not released and not expired; else STORE_LEASE_LOST. */
  readonly lease?: LeaseKey;
  /** Added to the counts instead of replacing them. */
  readonly add?: { readonly trainedCount?: number };
}

/** Numbers of a record that queries can compare and sort by. */
export type RecordNumber =
  | "score"
  | "turns"
  | "calls"
  | "promptTokens"
  | "outputTokens"
  | "toolErrors"
  | "driftedCalls"
  | "staleness"
  | "mismatch"
  | "trainedCount"
  | "lastTrainedStep"
  | "policyVersionMin"
  | "policyVersionMax"
  | "resample"
  | "sample";

export type FieldCondition = string | number | bigint | boolean | { readonly min?: number; readonly max?: number };

export interface RecordFilter {
  readonly run?: string;
  readonly task?: OneOf<string>;
  readonly status?: OneOf<RecordStatus>;
  readonly split?: RecordDocument["split"];
  readonly attempt?: number;
  readonly truncated?: boolean;
  readonly ungraded?: boolean;
  readonly numbers?: { readonly [Name in RecordNumber]?: number | Range };
  /** Records with a row in this step (id of the step document). */
  readonly step?: string;
  /** Code of the error it ended with. */
  readonly errorCode?: string;
  /** This text occurs, letter for letter, in what its calls were asked or answered. */
  readonly text?: string;
  /** The recipe's own fields; quick for those it indexes. */
  readonly fields?: { readonly [name: string]: FieldCondition };
  /** No lease on it is in force. */
  readonly unclaimed?: boolean;
}

export interface RecordCollection extends Collection<RecordDocument, RecordFilter, RecordNumber> {
  update(updates: readonly RecordUpdate[]): Promise<UpdateResults>;
}

export type CallSet = Partial<Omit<CallDocument, "id" | "run" | "record" | "parent">>;

export interface CallFilter {
  readonly run?: string;
  readonly record?: OneOf<string>;
  readonly status?: OneOf<CallDocument["status"]>;
}

export interface CallCollection extends Collection<CallDocument, CallFilter> {
  update(updates: readonly Update<CallSet>[]): Promise<UpdateResults>;
}

export interface ToolEventFilter {
  readonly run?: string;
  readonly record?: OneOf<string>;
  readonly name?: string;
  readonly failed?: boolean;
}

export interface RecordDataFilter {
  readonly run?: string;
  readonly record?: OneOf<string>;
  /** Id of the step document. */
  readonly step?: string;
  /** Also rows whose step was not committed or is void. */
  readonly void?: boolean;
}

export interface StepFilter {
  readonly run?: string;
  readonly step?: number | Range;
  readonly attempt?: number;
  /** Also those that a resume made void. */
  readonly void?: boolean;
}

/** Plans and steps: at most one per (run, step) is not void; a second one is STORE_DUPLICATE. */
export interface StepLikeCollection<D> extends Collection<D, StepFilter, "step"> {
  /**
   * Makes everything of the run after `step` void, last step first, so that a crash on the way leaves a whole prefix.
   * Returns what was voided, in order of step. Doing it again does nothing.
   */
  voidAfter(run: string, step: number, attempt: number): Promise<readonly D[]>;
}

export interface StepCollection extends StepLikeCollection<StepDocument> {
  /** Adds metrics that were measured after the commit, such as an evaluation. A name that is there is STORE_DUPLICATE. */
  addMetrics(id: string, metrics: Metrics): Promise<void>;
}

export interface ClaimRequest {
  readonly run: string;
  readonly record: string;
  readonly owner: string;
  readonly purpose: LeaseDocument["purpose"];
  readonly milliseconds: number;
}

export interface LeasePool {
  /** One entry per request: the lease, or null when another one on that record is in force. */
  claim(requests: readonly ClaimRequest[]): Promise<readonly (LeaseDocument | null)[]>;
  /** Claims up to `limit` unclaimed records that pass the filter, oldest first. */
  claimNext(
    filter: RecordFilter & { readonly run: string },
    request: Omit<ClaimRequest, "run" | "record">,
    limit: number,
  ): Promise<readonly LeaseDocument[]>;
  /** Moves the end of leases that are still in force; false for one that was lost. */
  renew(leases: readonly LeaseKey[], milliseconds: number): Promise<readonly boolean[]>;
  /** Renews all leases of an owner that are in force: its heartbeat. Returns how many. */
  renewOwner(owner: string, milliseconds: number): Promise<number>;
  /** Gives records back; false for a lease that was lost or released before. */
  release(leases: readonly LeaseKey[]): Promise<readonly boolean[]>;
  /** Leases in force on these records, by record. */
  inForce(records: readonly string[]): Promise<Map<string, LeaseDocument>>;
}

/** The recipe's own fields and which of them queries shall find quickly. */
export interface RecipeFields {
  readonly taskSchema: { readonly [name: string]: FieldType };
  readonly recordFields: { readonly [name: string]: FieldType };
  readonly indexes: readonly string[];
}

export interface RecordStore {
  readonly tasks: TaskCollection;
  readonly records: RecordCollection;
  /** dispatched_sampling_tasks */
  readonly calls: CallCollection;
  readonly toolEvents: Collection<ToolEventDocument, ToolEventFilter>;
  readonly recordData: Collection<RecordDataDocument, RecordDataFilter>;
  readonly plans: StepLikeCollection<PlanDocument>;
  readonly steps: StepCollection;
  readonly leases: LeasePool;
  /**
   * Brings the run's own fields and their indexes in step with its recipe. Throws STORE_FIELD_INVALID when documents of the run
   * hold a value that the new type refuses. From then on such values are refused when they are written.
   */
  applyRecipe(
    run: string,
    recipe: RecipeFields,
  ): Promise<{ readonly created: readonly string[]; readonly dropped: readonly string[] }>;
  dispose(): Promise<void>;
}

/** Bytes by their sha256. What is there under a hash is whole and never changes. */
export interface BlobStore {
  /** Stores the bytes, durable when it returns, and gives their hash. */
  put(bytes: Uint8Array): Promise<BlobHash>;
  has(hash: BlobHash): Promise<boolean>;
  /** All bytes, checked against the hash. Throws STORE_BLOB_MISSING, STORE_BLOB_CORRUPT. */
  get(hash: BlobHash): Promise<Uint8Array>;
  /** Bytes [start, start + length); the blob was checked against its hash before. */
  getRange(hash: BlobHash, start: number, length: number): Promise<Uint8Array>;
  /** All hashes, for garbage collection. */
  list(): AsyncIterable<BlobHash>;
  /** False when it was not there. */
  delete(hash: BlobHash): Promise<boolean>;
}
