// Claims in the SQLite store. The n-th claim on a record is the row `record#n`: whoever inserts it holds the record until
// it expires or is released. All processes share this machine's clock; a lease outlives its stated error ten times.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { LeaseDocument, LeaseKey } from "../../../protocol/record.ts";
import type { ClaimRequest, LeasePool } from "./interface.ts";
import type { SqliteConnection } from "./sqliteConnection.ts";

const columns = "id, run, record, n, owner, purpose, acquired, expires, released";

export interface LeaseClock {
  now(): number;
  /** Two clocks that take part differ by at most this many milliseconds. */
  readonly boundMilliseconds: number;
}

/** Ids of up to `limit` records that pass the filter and are not claimed, oldest first. */
export type ClaimCandidates = (filter: Parameters<LeasePool["claimNext"]>[0], limit: number) => readonly string[];

interface LeaseRow extends LeaseDocument {
  readonly _metadata?: unknown;
}

/** Whether the key names the newest claim on its record, and that claim is neither released nor expired. */
export function leaseInForce(connection: SqliteConnection, key: LeaseKey, now: number): boolean {
  const newest = connection.all<LeaseRow>(`SELECT ${columns} FROM leases WHERE record = ? ORDER BY n DESC LIMIT 1`, [
    key.record,
  ])[0];
  return newest !== undefined && newest.n === key.n && newest.owner === key.owner && holds(newest, now);
}

export function openLeases(connection: SqliteConnection, clock: LeaseClock, candidates: ClaimCandidates): LeasePool {
  const newestOf = (records: readonly string[]): Map<string, LeaseDocument> => {
    // With max() in the list, SQLite takes the other columns from the row that has the maximum.
    const rows = connection.all<LeaseRow>(
      `SELECT id, run, record, max(n) AS n, owner, purpose, acquired, expires, released
       FROM leases WHERE record IN (SELECT value FROM json_each(?)) GROUP BY record`,
      [JSON.stringify(records)],
    );
    return new Map(rows.map((row) => [row.record, leaseOf(row)]));
  };

  const claim = (requests: readonly ClaimRequest[]): (LeaseDocument | null)[] => {
    for (const request of requests) requireLength(request.milliseconds, clock);
    const now = clock.now();
    const newest = newestOf(requests.map((request) => request.record));
    return requests.map((request) => {
      const last = newest.get(request.record);
      if (last !== undefined && holds(last, now)) return null;
      const n = (last?.n ?? 0) + 1;
      const { run, record, owner, purpose } = request;
      const expires = now + request.milliseconds;
      const lease = { id: `${record}#${n}`, run, record, n, owner, purpose, acquired: now, expires, released: null };
      const inserted = connection.run(
        "INSERT OR IGNORE INTO leases (id, run, record, n, owner, purpose, acquired, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [lease.id, run, record, n, owner, purpose, now, lease.expires],
      );
      if (inserted === 0) return null;
      newest.set(record, lease);
      return lease;
    });
  };

  const change = (keys: readonly LeaseKey[], sql: string, value: number): boolean[] => {
    const now = clock.now();
    return connection.transaction(() =>
      keys.map(
        (key) => leaseInForce(connection, key, now) && connection.run(sql, [value, `${key.record}#${key.n}`]) === 1,
      ),
    );
  };

  return {
    claim: async (requests) => connection.transaction(() => claim(requests)),
    claimNext: async (filter, request, limit) =>
      connection.transaction(() =>
        claim(candidates(filter, limit).map((record) => ({ ...request, run: filter.run, record }))).filter(
          (lease) => lease !== null,
        ),
      ),
    renew: async (keys, milliseconds) => {
      requireLength(milliseconds, clock);
      return change(keys, "UPDATE leases SET expires = max(expires, ?) WHERE id = ?", clock.now() + milliseconds);
    },
    renewOwner: async (owner, milliseconds) => {
      requireLength(milliseconds, clock);
      const now = clock.now();
      return connection.transaction(() =>
        // An expired lease is never renewed, so that it cannot come back beside a newer one.
        connection.run(
          "UPDATE leases SET expires = max(expires, ?) WHERE owner = ? AND expires > ? AND released IS NULL",
          [now + milliseconds, owner, now],
        ),
      );
    },
    release: async (keys) => change(keys, "UPDATE leases SET released = ? WHERE id = ?", clock.now()),
    inForce: async (records) => {
      const now = clock.now();
      return new Map([...newestOf(records)].filter(([, lease]) => holds(lease, now)));
    },
  };
}

function holds(lease: LeaseDocument, now: number): boolean {
  return lease.released === null && lease.expires > now;
}

function leaseOf({ _metadata, ...lease }: LeaseRow): LeaseDocument {
  return lease;
}

function requireLength(milliseconds: number, clock: LeaseClock): void {
  const shortest = clock.boundMilliseconds * 10;
  if (milliseconds >= shortest) return;
  throw new RollscopeError(
    "STORE_LEASE_TOO_SHORT",
    `A lease of ${milliseconds} ms is shorter than ten times the clocks' bound of ${clock.boundMilliseconds} ms.`,
    { next: `Ask for at least ${shortest} ms.`, at: { milliseconds, shortest } },
  );
}
