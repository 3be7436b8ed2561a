// Plans and commits small steps, telling each committed one on standard output, until it is killed or told a last step.
// Arguments: folder, attempt, first step, last step. With last step 0 it goes on for ever.
import { join } from "node:path";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { commitStep, planStep } from "../../../agent-daemon/src/store/ledger.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import { stepDocumentId } from "../../../protocol/step.ts";
import { call, record, row, run } from "../../support/documents.ts";

async function main(folder: string, attempt: number, first: number, last: number): Promise<void> {
  const store = await openSqliteStore(join(folder, "records.db"));
  const blobs = await openFileBlobs(join(folder, "blobs"));
  for (let step = first; last === 0 || step <= last; step++) {
    const ids = [0, 1, 2].map((i) => `a${attempt}-s${step}-r${i}`);
    await store.records.insert(ids.map((id) => record(id, { status: "ready", attempt })));
    await store.calls.insert(
      ids.map((id) => call(`${id}/c0`, id, { message: { role: "assistant", content: "x".repeat(2000) } })),
    );
    const key = { run, attempt, step, window: step };
    await planStep(
      store,
      blobs,
      key,
      ids.map((id) => ({ record: id, pass: 0 })),
      step,
    );
    await blobs.put(Buffer.from(`weights ${attempt} ${step} `.repeat(200)));
    const stepId = stepDocumentId(run, attempt, step);
    await commitStep(
      store,
      blobs,
      {
        ...key,
        outcome: { kind: "applied" },
        metrics: { loss: 1 / step },
        weightVersion: step,
        checkpoint: null,
        wallMs: 1,
        committed: step,
        consumed: ids.map((id) => ({ record: id, pass: 0, calls: 1, tokens: 2 })),
      },
      ids.map((id) => row(`${stepId}/${id}`, id, stepId, { window: step })),
    );
    process.stdout.write(`${step}\n`);
  }
  await store.dispose();
}

main(process.argv[2] as string, ...(process.argv.slice(3).map(Number) as [number, number, number])).catch(
  (error: unknown) => {
    process.stdout.write(`${error instanceof RollscopeError ? error.code : String(error)}\n`);
    process.exitCode = 3;
  },
);
