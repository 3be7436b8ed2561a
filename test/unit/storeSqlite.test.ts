// The SQLite RecordStore: the suite of all stores, and what only a file can get wrong.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openFileBlobs } from "../../agent-daemon/src/store/fileBlobs.ts";
import { SqliteConnection } from "../../agent-daemon/src/store/sqliteConnection.ts";
import { migrate, migrations } from "../../agent-daemon/src/store/sqliteSchema.ts";
import { openSqliteStore } from "../../agent-daemon/src/store/sqliteStore.ts";
import { call, record, run, task } from "../support/documents.ts";
import { storeConformance } from "../support/storeConformance.ts";

let folder: string;
let next = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "store-sqlite-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fresh = () => join(folder, `${next++}`);

storeConformance("SQLite store", async () => {
  const place = fresh();
  let now = 1_000_000;
  const store = await openSqliteStore(join(place, "records.db"), { now: () => now });
  return {
    store,
    blobs: await openFileBlobs(join(place, "blobs")),
    advance: (milliseconds) => {
      now += milliseconds;
    },
    dispose: () => store.dispose(),
  };
});

describe("SQLite file", () => {
  it("is refused on a network file system, with the remedy", async () => {
    const opening = openSqliteStore(join(fresh(), "records.db"), { fileSystem: () => "nfs4" });
    await expect(opening).rejects.toMatchObject({ code: "STORE_NETWORK_FILE_SYSTEM", at: { type: "nfs4" } });
    await expect(opening).rejects.toHaveProperty("next", expect.stringMatching(/local disk.*MongoDB/));
  });

  it("that is no database, or a database of something else, is refused and left alone", async () => {
    const path = fresh();
    writeFileSync(path, "not a database ".repeat(500));
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    const other = fresh();
    const database = new Database(other);
    database.exec("CREATE TABLE notes (text TEXT)");
    database.close();
    await expect(openSqliteStore(other)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    const again = new Database(other);
    expect(again.prepare("SELECT name FROM sqlite_master").all()).toHaveLength(1);
    again.close();
  });

  it("whose document was damaged names the document", async () => {
    const path = fresh();
    const store = await openSqliteStore(path);
    await store.records.insert([record("good"), record("bad")]);
    const database = new Database(path);
    database.prepare("UPDATE records SET doc = ? WHERE id = ?").run('{"id":"bad"', "bad");
    database.close();
    expect((await store.records.get(["good"])).size).toBe(1);
    await expect(store.records.get(["good", "bad"])).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      at: { id: "bad" },
    });
    await store.dispose();
  });

  it("cannot be opened where no folder can be made, nor for reading where there is none", async () => {
    const file = fresh();
    writeFileSync(file, "");
    await expect(openSqliteStore(join(file, "records.db"))).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    await expect(openSqliteStore(fresh(), { readOnly: true })).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
  });

  it("is read by others while it is written, and refuses their writes", async () => {
    const path = fresh();
    const writer = await openSqliteStore(path);
    const reader = await openSqliteStore(path, { readOnly: true });
    await writer.records.insert([record("a")]);
    expect((await reader.records.count({ run })).count).toBe(1);
    await expect(reader.records.insert([record("b")])).rejects.toMatchObject({ code: "STORE_READ_ONLY" });
    await reader.dispose();
    await expect(reader.records.count({ run })).rejects.toMatchObject({ code: "STORE_CLOSED" });
    await writer.dispose();
  });

  it("that another process holds too long is reported as busy, and nothing is written", async () => {
    const path = fresh();
    const store = await openSqliteStore(path, { busyMilliseconds: 50 });
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    const insert = store.records.insert([record("a")]);
    await expect(insert).rejects.toMatchObject({ code: "STORE_BUSY", retryable: true });
    other.exec("ROLLBACK");
    other.close();
    await store.records.insert([record("a")]);
    await store.dispose();
  });

  it("on a full disk refuses the write whole, and goes on when there is room", () => {
    const connection = new SqliteConnection(fresh());
    migrate(connection);
    const pages = connection.all<{ page_count: number }>("PRAGMA page_count", [])[0]?.page_count ?? 0;
    connection.all(`PRAGMA max_page_count = ${pages + 4}`, []);
    const fill = (id: string, bytes: number) =>
      connection.transaction(() => {
        connection.run("INSERT INTO recipe_fields (run, doc) VALUES (?, 'first')", [`${id}-0`]);
        connection.run("INSERT INTO recipe_fields (run, doc) VALUES (?, ?)", [id, "x".repeat(bytes)]);
      });
    fill("small", 10);
    expect(() => fill("large", 100_000)).toThrow(expect.objectContaining({ code: "STORE_DISK_FULL" }));
    expect(connection.all("SELECT run FROM recipe_fields", [])).toHaveLength(2);
    connection.all("PRAGMA max_page_count = 100000", []);
    fill("large", 100_000);
    expect(connection.all("SELECT run FROM recipe_fields", [])).toHaveLength(4);
    connection.dispose();
  });

  it("of an older version is brought up to date once, of a later one refused", async () => {
    const path = fresh();
    const older = new SqliteConnection(path);
    migrate(older);
    older.dispose();
    const later = [...migrations, "CREATE TABLE more (id TEXT); INSERT INTO more VALUES ('kept')"];
    const reading = new SqliteConnection(path, { readOnly: true });
    expect(() => migrate(reading, later)).toThrow(expect.objectContaining({ code: "STORE_VERSION_TOO_OLD" }));
    reading.dispose();
    for (let opening = 0; opening < 2; opening++) {
      const connection = new SqliteConnection(path);
      migrate(connection, later);
      expect(connection.all("SELECT id FROM more", [])).toHaveLength(1);
      connection.dispose();
    }
    await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "STORE_VERSION_TOO_NEW" });
  });

  it("takes a failed migration back", () => {
    const path = fresh();
    const connection = new SqliteConnection(path);
    expect(() => migrate(connection, ["CREATE TABLE one (id TEXT)", "CREATE TABLE two (id TEXT); NOT SQL"])).toThrow();
    expect(connection.all("SELECT name FROM sqlite_master", [])).toEqual([]);
    migrate(connection);
    connection.dispose();
  });

  it("answers each common question by an index", async () => {
    const store = await openSqliteStore(fresh());
    await store.applyRecipe(run, { taskSchema: {}, recordFields: { level: "integer" }, indexes: ["level"] });
    const index = async (filter: Parameters<typeof store.records.query>[0], order?: "score") =>
      (await store.records.query(filter, order === undefined ? {} : { order })).index;
    expect(await index({ run })).toBe("records_created");
    expect(await index({ run, status: "ready" })).toBe("records_status");
    expect(await index({ task: "t" })).toBe("records_task");
    expect(await index({ run }, "score")).toBe("records_score");
    expect(await index({ run, fields: { level: 3 } })).toBe("records_field_level");
    expect(await index({ step: "s" })).toContain("record_data_step");
    expect((await store.records.count({ run, numbers: { staleness: { min: 2 } } })).index).toBe("records_staleness");
    expect((await store.tasks.query({ run, split: "train" }, { order: "index" })).index).toBe("tasks_index");
    expect((await store.calls.query({ record: ["r"] })).index).toBe("calls_record");
    expect((await store.steps.query({ run, step: 3 })).index).toBe("steps_live");
    expect((await store.records.count({})).index).not.toBe("");
    await store.dispose();
  });

  it("refuses a document that is too long for a document server", async () => {
    const store = await openSqliteStore(fresh());
    const long = call("c", "r", { message: { role: "assistant", content: "x".repeat(9 << 20) } });
    await expect(store.calls.insert([long])).rejects.toMatchObject({ code: "STORE_DOCUMENT_TOO_LARGE" });
    await store.tasks.insert([task("t", { payload: { text: "x".repeat(5 << 20) } })]);
    await store.dispose();
  });
});
