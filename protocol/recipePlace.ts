// The sections of recipe.yaml that say where things are: model, engine, launcher, data, store, retention and the recipe's
// own fields. Every key carries its description; a knob that nothing honours must not be here.
import { z } from "zod";

export const modelSchema = z
  .strictObject({
    source: z
      .string()
      .min(1)
      .describe(
        "Where the weights come from: a path (begins with '.', '/' or '~', or ends with .gguf; relative to the recipe's folder), " +
          "a Hugging Face id 'owner/name', or a named source such as smollm2-135m-instruct.",
      ),
    revision: z
      .string()
      .min(1)
      .default("main")
      .describe("Branch, tag or commit of a Hugging Face id; read for an id only."),
  })
  .describe("The model that is trained, and its frozen copy when the objective asks for a reference.");

export const engineSchema = z
  .strictObject({
    kind: z.enum(["embedded"]).default("embedded").describe("Which engine multiplies the matrices."),
    dtype: z.enum(["f32"]).default("f32").describe("Precision of products and weights."),
    threads: z
      .int()
      .min(1)
      .max(1024)
      .nullable()
      .default(null)
      .describe("Worker threads; null = one per core. Results are bitwise equal for one thread count only."),
    memoryLimitGb: z
      .number()
      .positive()
      .nullable()
      .default(null)
      .describe("Most memory the engine may plan for, in 10^9 bytes; null = what the machine has."),
  })
  .prefault({})
  .describe("The engine that trains and generates.");

export const launcherSchema = z
  .strictObject({ kind: z.enum(["local"]).default("local").describe("Where the run's processes start.") })
  .prefault({})
  .describe("How the run is started.");

export const dataSchema = z
  .strictObject({
    train: z
      .string()
      .min(1)
      .describe(
        "JSONL task file, one task a line: a path relative to the recipe's folder, or hf://datasets/owner/name[@revision]/path.",
      ),
    heldOut: z
      .string()
      .min(1)
      .nullable()
      .default(null)
      .describe("JSONL task file for evaluation, named like train; null = heldOutCount tasks are taken out of train."),
    heldOutCount: z
      .int()
      .min(0)
      .default(0)
      .describe(
        "How many tasks of train are set aside for evaluation when heldOut is null; chosen by a hash of seed and row, so the choice " +
          "is the same on every machine.",
      ),
    idField: z
      .string()
      .min(1)
      .default("id")
      .describe("Field of a row that names the task; a row without it is named by its index in the file."),
    limit: z.int().min(1).nullable().default(null).describe("Use only the first rows of the train file; null = all."),
    order: z
      .enum(["shuffled", "file"])
      .default("shuffled")
      .describe("shuffled: every epoch in an order of its own, from seed and epoch; file: as the rows stand."),
    seed: z.int().min(0).nullable().default(null).describe("Seed of order and held-out choice; null = training.seed."),
  })
  .describe("The tasks.");

export const storeSchema = z
  .strictObject({
    records: z
      .strictObject({ kind: z.enum(["sqlite"]).default("sqlite").describe("A SQLite file in the run's folder.") })
      .prefault({})
      .describe("Where tasks, records, calls, training rows and steps are kept."),
    blobs: z
      .strictObject({
        kind: z.enum(["files"]).default("files").describe("Files named by their hash in the run's folder."),
      })
      .prefault({})
      .describe("Where large token columns are kept."),
  })
  .prefault({})
  .describe("Where the run keeps what it records.");

export const retentionSchema = z
  .strictObject({})
  .prefault({})
  .describe(
    "Disk budget of rollouts and blobs. Nothing is deleted yet; for checkpoints see training.checkpoint.keepLast.",
  );

const fieldTypeSchema = z.enum(["string", "integer", "number", "boolean", "json"]);

export type FieldType = z.infer<typeof fieldTypeSchema>;

const fieldName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "a field name has letters, digits and underscores only");

export const taskFieldsSchema = z
  .record(fieldName, fieldTypeSchema.describe("Type of the field."))
  .default({})
  .describe("Fields that every row of the task files must have, with their types; empty = rows are not checked.");

export const recordFieldsSchema = z
  .record(fieldName, fieldTypeSchema.describe("Type of the field."))
  .default({})
  .describe("The recipe's own fields of a record, with their types; evaluate returns their values.");

export const indexesSchema = z
  .array(fieldName)
  .default([])
  .describe("Names of recordFields that get an index, for queries.");
