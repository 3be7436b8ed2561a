// Tells a client which runs changed. What changes while the client has not taken the last message is told once, as it is then.
import type { MethodSession } from "../methods/methodTypes.ts";
import type { KnownRun } from "./knownRun.ts";
import type { KnownRuns } from "./knownRuns.ts";

export function watchRuns(runs: KnownRuns, session: Pick<MethodSession, "notify">): { dispose(): void } {
  const changed = new Set<KnownRun>();
  const removed = new Set<string>();
  let sending = false;
  let disposed = false;
  const send = async () => {
    if (sending) return;
    sending = true;
    while (!disposed && changed.size + removed.size > 0) {
      const now = [...changed].filter((run) => !removed.has(run.path)).map((run) => run.summary());
      const gone = [...removed];
      changed.clear();
      removed.clear();
      await session.notify("runs/changed", { changed: now, removed: gone });
    }
    sending = false;
  };
  const off = runs.onChange((run, path) => {
    if (run !== null) {
      changed.add(run);
      removed.delete(run.path);
    }
    if (path !== null) removed.add(path);
    void send();
  });
  return {
    dispose() {
      disposed = true;
      off();
    },
  };
}
