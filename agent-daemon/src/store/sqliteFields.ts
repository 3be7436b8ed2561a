// The recipe's own fields in the SQLite store: which types a run's fields have, and the indexes over them. Indexes serve
// every run in the file; one goes away when no run asks for it any more.
import { z } from "zod";
import { recordFieldsSchema, taskFieldsSchema } from "../../../protocol/recipePlace.ts";
import type { RecordDocument, TaskDocument } from "../../../protocol/record.ts";
import { decodeDocument, encodeDocument } from "./documentText.ts";
import type { RecipeFields } from "./interface.ts";
import { checkRecordFields, checkTaskFields, fieldError } from "./recipeFieldTypes.ts";
import type { SqliteConnection } from "./sqliteConnection.ts";
import { fieldExpression } from "./sqliteFilter.ts";
import type { Table } from "./sqliteTable.ts";

const recipeFieldsSchema = z.strictObject({
  taskSchema: taskFieldsSchema,
  recordFields: recordFieldsSchema,
  indexes: z.array(z.string()),
});

const indexPrefix = "records_field_";

export interface SqliteFields {
  apply(
    run: string,
    recipe: RecipeFields,
  ): { readonly created: readonly string[]; readonly dropped: readonly string[] };
  /** null: no recipe was applied for the run, so nothing is checked. */
  of(run: string): RecipeFields | null;
  checkTask(task: TaskDocument): void;
  checkRecord(record: Pick<RecordDocument, "id" | "run" | "fields">): void;
}

export function openSqliteFields(
  connection: SqliteConnection,
  tasks: Table<TaskDocument>,
  records: Table<RecordDocument>,
): SqliteFields {
  /** Only this process's writer changes a run's fields, and a run has one writer; so what was read once stays right. */
  const known = new Map<string, RecipeFields>();

  const of = (run: string): RecipeFields | null => {
    const cached = known.get(run);
    if (cached !== undefined) return cached;
    const row = connection.all<{ readonly doc: string }>("SELECT doc FROM recipe_fields WHERE run = ?", [run])[0];
    if (row === undefined) return null;
    const fields = recipeFieldsSchema.parse(decodeDocument(row.doc));
    known.set(run, fields);
    return fields;
  };

  const checkStored = (run: string, before: RecipeFields | null, after: RecipeFields): void => {
    // Documents that lack a new field, or still have one that was taken out, stay as they are: they were right when written.
    if (changed(before?.taskSchema, after.taskSchema)) {
      for (const task of tasks.all([{ sql: "run = ?", values: [run] }], "id"))
        checkTaskFields(task.id, task.payload, after.taskSchema);
    }
    if (changed(before?.recordFields, after.recordFields)) {
      for (const record of records.all([{ sql: "run = ?", values: [run] }], "id")) {
        const kept = Object.fromEntries(
          Object.entries(record.fields).filter(([name]) => Object.hasOwn(after.recordFields, name)),
        );
        checkRecordFields(record.id, kept, after.recordFields);
      }
    }
  };

  return {
    of,
    apply(run, recipe) {
      const fields = recipeFieldsSchema.parse(recipe);
      for (const name of fields.indexes) {
        if (Object.hasOwn(fields.recordFields, name)) continue;
        throw fieldError(`indexes names ${name}, which recordFields does not`, "Correct indexes in recipe.yaml.", {
          field: name,
        });
      }
      const result = connection.transaction(() => {
        known.delete(run);
        checkStored(run, of(run), fields);
        connection.run(
          "INSERT INTO recipe_fields (run, doc) VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET doc = excluded.doc",
          [run, encodeDocument(fields)],
        );
        return alignIndexes(connection);
      });
      known.set(run, fields);
      connection.forgetPlans();
      return result;
    },
    checkTask(task) {
      const fields = of(task.run);
      if (fields !== null) checkTaskFields(task.id, task.payload, fields.taskSchema);
    },
    checkRecord(record) {
      const fields = of(record.run);
      if (fields !== null) checkRecordFields(record.id, record.fields, fields.recordFields);
    },
  };
}

function alignIndexes(connection: SqliteConnection): { readonly created: string[]; readonly dropped: string[] } {
  const wanted = new Set(
    connection
      .all<{ readonly doc: string }>("SELECT doc FROM recipe_fields", [])
      .flatMap(({ doc }) => recipeFieldsSchema.parse(decodeDocument(doc)).indexes),
  );
  const present = new Set(
    connection
      .all<{ readonly name: string }>(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'records'",
        [],
      )
      .flatMap(({ name }) => (name.startsWith(indexPrefix) ? [name.slice(indexPrefix.length)] : [])),
  );
  const created = [...wanted].filter((name) => !present.has(name));
  const dropped = [...present].filter((name) => !wanted.has(name));
  for (const name of dropped) connection.exec(`DROP INDEX ${indexPrefix}${name}`);
  for (const name of created)
    connection.exec(`CREATE INDEX ${indexPrefix}${name} ON records (run, ${fieldExpression(name)}, created, id)`);
  return { created, dropped };
}

function changed(
  before: { readonly [name: string]: string } | undefined,
  after: { readonly [name: string]: string },
): boolean {
  return Object.entries(after).some(([name, type]) => before?.[name] !== type);
}
