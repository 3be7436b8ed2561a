import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { SqliteConnection } from "../../agent-daemon/src/store/sqliteConnection.ts";

function tableOf(rows: number) {
  const folder = mkdtempSync(join(tmpdir(), "rollscope-readers-"));
  const file = join(folder, "records.sqlite");
  const writer = new SqliteConnection(file);
  writer.exec("CREATE TABLE numbers (n INTEGER PRIMARY KEY)");
  const add = (n: number) => writer.transaction(() => writer.run("INSERT INTO numbers VALUES (?)", [n]));
  for (let n = 0; n < rows; n++) add(n);
  const reader = new SqliteConnection(file, { readOnly: true, staleMilliseconds: 0 });
  onTestFinished(() => {
    reader.dispose();
    writer.dispose();
    rmSync(folder, { recursive: true, force: true });
  });
  const count = () => reader.all<{ n: number }>("SELECT count(*) AS n FROM numbers", [])[0]!.n;
  return { add, count, reader };
}

test("a reader sees what is written after it opened, also after a statement of its own failed", () => {
  const { add, count, reader } = tableOf(3);
  expect(count()).toBe(3);
  add(10);
  expect(count()).toBe(4);
  // The binding leaves a read open behind a statement that cannot be prepared.
  expect(() => reader.all("SELECT missing FROM numbers", [])).toThrow();
  add(11);
  expect(count()).toBe(5);
  add(12);
  expect(count()).toBe(6);
});

test("a reader refuses to write, also after it caught up", () => {
  const { add, count, reader } = tableOf(1);
  expect(count()).toBe(1);
  add(10);
  expect(count()).toBe(2);
  expect(() => reader.run("INSERT INTO numbers VALUES (?)", [11])).toThrow();
});
