// Claims records of a run until none is left and prints the ids of its leases. Arguments: store file, owner.
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import type { LeaseDocument } from "../../../protocol/record.ts";
import { run } from "../../support/documents.ts";

async function main(file: string, owner: string): Promise<void> {
  const store = await openSqliteStore(file);
  process.stdout.write("ready\n");
  await new Promise((resolve) => process.stdin.once("data", resolve));
  const request = { owner, purpose: "rollout", milliseconds: 600_000 } as const;
  const got: string[] = [];
  for (;;) {
    const leases: readonly LeaseDocument[] = await store.leases.claimNext({ run, status: "created" }, request, 3);
    if (leases.length === 0) break;
    got.push(...leases.map((lease) => lease.id));
    await store.records.update(leases.map((lease) => ({ id: lease.record, set: { status: "running" }, lease })));
  }
  await store.dispose();
  process.stdout.write(`${JSON.stringify(got)}\n`);
  process.exit(0);
}

void main(process.argv[2] as string, process.argv[3] as string);
