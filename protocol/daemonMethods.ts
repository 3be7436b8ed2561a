// The RPC between the daemon and its clients (editor, command line, pages in a browser): every method with the schemas of its
// parameters and its result, and every notification. Both sides parse with these; nothing else crosses the wire but bulk frames.
import { z } from "zod";
import { journalErrorSchema } from "./journal.ts";
import { pageStateSchema } from "./pageHost.ts";
import { explanationSchema, runDeltaSchema, runSummarySchema, waterfallSchema } from "./runView.ts";
import {
  tokenColumnNames,
  trajectoryOutlineSchema,
  trajectoryRowSchema,
  trajectorySourceSchema,
  turnViewSchema,
} from "./trajectoryView.ts";

/**
 * Raised when a client or daemon of before could misread a message. A daemon answers `hello` of any version; everything else only
 * for the same number. Adding an optional key or a method does not raise it.
 */
export const protocolVersion = 1;

const count = z.int().min(0);
const folder = z.string().min(1);
const empty = z.object({});
/** What of a turn a found text stands in. */
export const searchPlaces = ["part", "toolName", "toolCall"] as const;
export type SearchPlace = (typeof searchPlaces)[number];
const bulk = z.object({
  /** Id of the frame that comes on the bulk channel. */
  bulk: count,
});

export const helloResultSchema = z.object({
  protocol: count,
  version: z.string(),
  pid: z.int(),
  started: z.number(),
  /** Give it in the hello of the bulk connection. */
  session: z.string(),
  /** File that the daemon logs to, on its machine. */
  log: z.string().optional(),
  machine: z.object({
    hostname: z.string(),
    platform: z.string(),
    cpus: count,
    cpuModel: z.string(),
    memory: z.number(),
    node: z.string(),
  }),
});
export type HelloResult = z.infer<typeof helloResultSchema>;

export const machineStateSchema = z.object({
  /** 0…1 over all processors since the last look. */
  cpu: z.number(),
  memory: z.object({ total: z.number(), available: z.number() }),
  /** Of the file system that holds the runs. */
  disk: z.object({ path: z.string(), total: z.number(), free: z.number() }).nullable(),
  gpus: z.array(
    z.object({ name: z.string(), utilisation: z.number(), memoryUsed: z.number(), memoryTotal: z.number() }),
  ),
  at: z.number(),
});

export const startRequestSchema = z.object({
  /** Folder with recipe.yaml. */
  recipe: folder,
  profile: z.string().nullable().default(null),
  /** As on the command line: "training.steps" → "3". */
  overrides: z.record(z.string(), z.string()).default({}),
  /** Where runs are made; null: `runs` beside the recipe, or what the recipe's environment says. */
  outputDir: z.string().nullable().default(null),
  /** Wait for a debugger before recipe code runs; the answer says where it listens. */
  debug: z.boolean().default(false),
});

/**
 * Where a run's process waits for a debugger. It listens on loopback only, and its path is a secret of 122 random bits which it
 * publishes to nobody but who started it (`--inspect-publish-uid=stderr`): other users of the machine reach the port and are refused.
 */
export const debugTargetSchema = z.object({
  host: z.string(),
  port: z.int(),
  /** ws://host:port/secret, as the process announced it. */
  url: z.string(),
});
export type DebugTarget = z.infer<typeof debugTargetSchema>;

/** From 0, as in an editor: columns count UTF-16 units, ends are not included. */
const textRangeSchema = z.object({ line: count, column: count, endLine: count, endColumn: count });
const textEditSchema = z.object({ range: textRangeSchema, newText: z.string() });

export const diagnosticSchema = z.object({
  code: z.string(),
  severity: z.enum(["error", "warning", "hint"]),
  message: z.string(),
  next: z.string(),
  file: z.string(),
  /** Null when it is about the whole file. */
  range: textRangeSchema.nullable(),
  key: z.string().nullable(),
  /** Text that would replace `range` (absent: that of the diagnostic), and further edits of the same text that belong to it. */
  fixes: z.array(
    z.object({
      title: z.string(),
      newText: z.string(),
      range: textRangeSchema.optional(),
      also: z.array(textEditSchema).optional(),
    }),
  ),
});
export type RecipeDiagnostic = z.infer<typeof diagnosticSchema>;
export type TextRange = z.infer<typeof textRangeSchema>;
export type TextEdit = z.infer<typeof textEditSchema>;

export const doctorItemSchema = z.object({
  id: z.string(),
  title: z.string(),
  status: z.enum(["ok", "warning", "failed", "running"]),
  detail: z.string(),
  next: z.string().nullable(),
});

/** Both ends inclusive. */
const rangeSchema = z.object({ min: z.number().optional(), max: z.number().optional() });

export const trajectoryFilterSchema = z.object({
  step: count.optional(),
  task: z.string().optional(),
  split: z.enum(["train", "heldOut"]).optional(),
  status: z.array(z.string()).optional(),
  score: rangeSchema.optional(),
  turns: rangeSchema.optional(),
  /** Sampled tokens. */
  outputTokens: rangeSchema.optional(),
  staleness: rangeSchema.optional(),
  mismatch: rangeSchema.optional(),
  drifted: z.boolean().optional(),
  truncated: z.boolean().optional(),
  toolErrors: z.boolean().optional(),
  text: z.string().optional(),
});
export const trajectoryOrders = [
  "created",
  "score",
  "mismatch",
  "outputTokens",
  "turns",
  "driftedCalls",
  "staleness",
] as const;

/** One metric in buckets of equal width. Attempts are separate series, so that no line ever runs backwards. */
export const seriesRequestSchema = z.object({
  folder,
  names: z.array(z.string()).max(64),
  /** Steps, both inclusive; null: from the first, to the last. */
  from: count.nullable(),
  to: count.nullable(),
  /** At most so many buckets a series; widths are powers of two steps aligned at 0, so that buckets can be kept. */
  buckets: z.int().min(1).max(20_000),
  /** Only buckets with something that came after this event number, each whole: it replaces the one of its first step. null: all. */
  after: count.nullable().default(null),
});

interface Method {
  readonly params: z.ZodType;
  readonly result: z.ZodType;
}

/** A trajectory beside another: the first turn and sampled token that differ; null: none does. */
const comparedSchema = z.object({
  row: trajectoryRowSchema,
  parts: z.object({ turn: count, token: count }).nullable(),
});

export const daemonMethods = {
  hello: {
    params: z.object({
      protocol: count,
      client: z.object({ name: z.string(), version: z.string() }),
      /** `bulk` makes this connection the bulk channel of `session`. */
      channel: z.enum(["rpc", "bulk"]).default("rpc"),
      session: z.string().nullable().default(null),
    }),
    result: helloResultSchema,
  },
  /** Ends the daemon; runs go on. */
  shutdown: { params: empty, result: empty },
  "machine/state": { params: empty, result: machineStateSchema },
  doctor: {
    params: z.object({ recipe: z.string().nullable() }),
    result: z.object({ items: z.array(doctorItemSchema) }),
  },

  /** Folders whose runs a client wants to see (besides those the daemon started): output folders, or recipes' folders. */
  "runs/look": {
    params: z.object({ folders: z.array(folder) }),
    result: z.object({ runs: z.array(runSummarySchema) }),
  },
  /** All known runs, newest first; afterwards `runs/changed` says what changed. */
  "runs/watch": { params: empty, result: z.object({ runs: z.array(runSummarySchema) }) },
  "runs/unwatch": { params: empty, result: empty },
  /** The daemon starts a run and answers once its folder exists. */
  "run/start": {
    params: startRequestSchema,
    result: z.object({ summary: runSummarySchema, debug: debugTargetSchema.nullable() }),
  },
  "run/resume": {
    params: z.object({ folder, debug: z.boolean().default(false) }),
    result: z.object({ summary: runSummarySchema, debug: debugTargetSchema.nullable() }),
  },
  "run/stop": { params: z.object({ folder, now: z.boolean() }), result: runSummarySchema },
  "run/pause": { params: z.object({ folder }), result: runSummarySchema },
  "run/continue": { params: z.object({ folder }), result: runSummarySchema },
  /** Forgets a run that is not running, or removes its folder too. */
  "run/remove": { params: z.object({ folder, deleteFiles: z.boolean() }), result: empty },
  /** Afterwards `run/delta` brings a snapshot (unless the cursor can be served) and then events. */
  "run/follow": { params: z.object({ folder, cursor: count.nullable() }), result: empty },
  "run/unfollow": { params: z.object({ folder }), result: empty },
  /** Last bytes of the run's log, control characters as they were written. */
  "run/log": {
    params: z.object({ folder, bytes: z.int().min(1).max(1_000_000) }),
    result: z.object({ text: z.string(), truncated: z.boolean() }),
  },
  /** Configuration in force with the origin of each value, and the environment of each attempt. */
  "run/config": {
    params: z.object({ folder }),
    result: z.object({
      values: z.array(z.object({ key: z.string(), value: z.unknown(), origin: z.string() })),
      environments: z.array(z.object({ attempt: z.int(), environment: z.record(z.string(), z.unknown()) })),
    }),
  },
  /**
   * Bulk frame: for series k the arrays `k.step` (first step of the bucket), `k.min`, `k.max`, `k.last` (f64, NaN where a bucket has no
   * finite number) and `k.bad` (i32, values that are not finite). extra: {cursor, width, series: [{name, attempt, voidedAfter}]}.
   */
  "metrics/series": { params: seriesRequestSchema, result: bulk },
  /** Exact values of steps, for tables and exports. */
  "metrics/rows": {
    params: z.object({ folder, from: count, limit: z.int().min(1).max(10_000) }),
    result: z.object({
      rows: z.array(
        z.object({
          attempt: z.int(),
          step: count,
          void: z.boolean(),
          metrics: z.record(z.string(), z.union([z.number(), z.string()])),
        }),
      ),
      more: z.boolean(),
    }),
  },
  /** Address of a page for a browser on the daemon's machine; it opens once, and the browser keeps what it needs for the next. */
  "page/open": { params: z.object({ state: pageStateSchema }), result: z.object({ url: z.string() }) },
  "run/waterfall": { params: z.object({ folder, step: count.nullable() }), result: waterfallSchema },
  "run/explainZeroLoss": { params: z.object({ folder, step: count }), result: explanationSchema },

  "trajectories/list": {
    params: z.object({
      folder,
      filter: trajectoryFilterSchema,
      order: z.enum(trajectoryOrders).default("created"),
      descending: z.boolean().default(true),
      limit: z.int().min(1).max(1000).default(100),
      after: z.string().nullable().default(null),
    }),
    result: z.object({
      rows: z.array(trajectoryRowSchema),
      next: z.string().nullable(),
      total: count,
      index: z.string(),
    }),
  },
  /** The records of a step: one hop from a metric point. */
  "trajectories/ofStep": {
    params: z.object({ folder, step: count }),
    result: z.object({ rows: z.array(trajectoryRowSchema) }),
  },
  "trajectory/open": { params: z.object({ source: trajectorySourceSchema }), result: trajectoryOutlineSchema },
  "trajectory/close": { params: z.object({ source: trajectorySourceSchema }), result: empty },
  "trajectory/turns": {
    params: z.object({ source: trajectorySourceSchema, from: count, to: count }),
    result: z.object({ turns: z.array(turnViewSchema) }),
  },
  /** Characters [from, to) of a part that was cut. */
  "trajectory/part": {
    params: z.object({ source: trajectorySourceSchema, turn: count, part: count, from: count, to: count }),
    result: z.object({ text: z.string(), characters: count }),
  },
  /** What the model was shown, rendered as text with its special tokens, and what it answered. */
  "trajectory/raw": {
    params: z.object({ source: trajectorySourceSchema, turn: count }),
    result: z.object({ text: z.string() }),
  },
  /**
   * Bulk frame: one array a column; extra: {text, ends} (tokenTextSchema) and {from}. `step` chooses whose numbers the training
   * columns show; null: the last that trained it.
   */
  "trajectory/tokens": {
    params: z.object({
      source: trajectorySourceSchema,
      from: count,
      to: count,
      columns: z.array(z.enum(tokenColumnNames as [string, ...string[]])),
      row: z.string().nullable(),
    }),
    result: bulk,
  },
  /** Least, or greatest, of a column over the whole trajectory: "jump to the worst token". */
  "trajectory/extreme": {
    params: z.object({
      source: trajectorySourceSchema,
      column: z.string(),
      row: z.string().nullable(),
      most: z.enum(["least", "greatest", "absolute"]),
    }),
    result: z.object({ token: count, value: z.number() }).nullable(),
  },
  /**
   * Occurrences of a text, in order, from a turn on; at most `limit`. `part` is the number of the turn's part, or of its tool call
   * where the text stands in a call's name or arguments.
   */
  "trajectory/search": {
    params: z.object({
      source: trajectorySourceSchema,
      text: z.string().min(1),
      fromTurn: count,
      limit: z.int().min(1).max(1000),
    }),
    result: z.object({
      hits: z.array(
        z.object({
          turn: count,
          in: z.enum(searchPlaces).default("part"),
          part: count,
          at: count,
          excerpt: z.string(),
        }),
      ),
      /** Turn to go on from; null: searched to the end. */
      next: count.nullable(),
      /** A turn has more places than are listed of one turn. */
      cut: z.boolean().default(false),
    }),
  },
  /** The group's other trajectories, and where each parts from this one. */
  "trajectory/siblings": {
    params: z.object({ source: trajectorySourceSchema }),
    result: z.object({ rows: z.array(comparedSchema) }),
  },
  /** Any others beside this one, of whatever run or file, and where each parts from it. */
  "trajectory/diff": {
    params: z.object({ source: trajectorySourceSchema, others: z.array(trajectorySourceSchema).min(1).max(8) }),
    result: z.object({ rows: z.array(comparedSchema) }),
  },
  "trajectory/image": { params: z.object({ source: trajectorySourceSchema, handle: z.string() }), result: bulk },
  /** Trajectories of a file that another tool wrote, or that was exported here. */
  "file/open": {
    params: z.object({ path: z.string().min(1) }),
    result: z.object({
      format: z.string(),
      rows: z.array(trajectoryRowSchema),
      complete: z.boolean(),
      problems: z.array(z.object({ line: count.nullable(), message: z.string() })),
    }),
  },
  "file/import": {
    params: z.object({ paths: z.array(z.string()), outputDir: z.string().nullable() }),
    result: z.object({ summary: runSummarySchema, imported: count, problems: z.array(journalErrorSchema) }),
  },
  "run/export": {
    params: z.object({ folder, format: z.enum(["chat", "training", "archive"]), path: z.string().min(1) }),
    result: z.object({ path: z.string(), records: count, bytes: z.number() }),
  },

  /** Recipes in folders, and those that come with Rollscope. */
  "recipes/list": {
    params: z.object({ folders: z.array(folder) }),
    result: z.object({
      recipes: z.array(
        z.object({ folder, name: z.string(), description: z.string(), shipped: z.boolean(), problems: count }),
      ),
    }),
  },
  "recipe/check": {
    params: z.object({
      folder,
      /** Text of recipe.yaml as it stands in an editor; null: the file. */
      text: z.string().nullable(),
      profile: z.string().nullable().default(null),
      overrides: z.record(z.string(), z.string()).default({}),
    }),
    result: z.object({ diagnostics: z.array(diagnosticSchema) }),
  },
  /** Value in force of each key, with the layer that set it. */
  "recipe/values": {
    params: z.object({ folder, text: z.string().nullable() }),
    result: z.object({ values: z.array(z.object({ key: z.string(), value: z.unknown(), origin: z.string() })) }),
  },
  /** Makes `folder`/`name`; the result's folder is that one, its files are relative to it. */
  "recipe/create": {
    params: z.object({ template: z.enum(["grpo", "blank"]), folder, name: z.string().min(1) }),
    result: z.object({ folder, files: z.array(z.string()) }),
  },
} as const satisfies Record<string, Method>;

export type DaemonMethod = keyof typeof daemonMethods;
export type DaemonParams<M extends DaemonMethod> = z.input<(typeof daemonMethods)[M]["params"]>;
export type DaemonRequest<M extends DaemonMethod> = z.output<(typeof daemonMethods)[M]["params"]>;
export type DaemonResult<M extends DaemonMethod> = z.output<(typeof daemonMethods)[M]["result"]>;

export const daemonNotifications = {
  "runs/changed": z.object({ changed: z.array(runSummarySchema), removed: z.array(folder) }),
  "run/delta": runDeltaSchema,
  /** A trajectory grew: a file is being indexed, a rollout runs. */
  "trajectory/changed": z.object({ source: trajectorySourceSchema, outline: trajectoryOutlineSchema }),
  "machine/changed": machineStateSchema,
  "doctor/progress": doctorItemSchema,
} as const satisfies Record<string, z.ZodType>;

export type DaemonNotification = keyof typeof daemonNotifications;
export type NotificationOf<N extends DaemonNotification> = z.output<(typeof daemonNotifications)[N]>;

/** Error data of a refused request: what a RollscopeError says. */
export const rpcErrorDataSchema = journalErrorSchema.extend({ retryable: z.boolean() });
