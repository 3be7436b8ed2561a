// What the machine has left. Who asked once is told again every few seconds while it is connected; nobody else costs anything.
import { homedir } from "node:os";
import type { DaemonResult } from "../../../../protocol/daemonMethods.ts";
import { cpuTimes, cpuUse, diskLeft, memoryLeft } from "../../telemetry/machineState.ts";
import { createGpuReader } from "../supervisor/gpuReader.ts";
import type { CreateMethods, MethodSession } from "./methodTypes.ts";

const everyMilliseconds = 10_000;
/** Looks of several clients within this time share one. */
const sharedMilliseconds = 1000;

export const machineMethods: CreateMethods = ({ clock, runs }) => {
  const gpus = createGpuReader(clock);
  const told = new Map<MethodSession, { busy: boolean }>();
  let before = cpuTimes();
  let last: DaemonResult<"machine/state"> | null = null;
  let stopTelling: (() => void) | null = null;

  const look = async (): Promise<DaemonResult<"machine/state">> => {
    const at = clock.now();
    if (last !== null && at - last.at < sharedMilliseconds) return last;
    const now = cpuTimes();
    const cpu = cpuUse(before, now);
    before = now;
    const where = (await runs.list())[0]?.folder ?? homedir();
    last = { cpu, memory: memoryLeft(), disk: await diskLeft(where), gpus: await gpus.read(), at };
    return last;
  };

  const tellLater = () => {
    if (stopTelling !== null || told.size === 0) return;
    stopTelling = clock.after(everyMilliseconds, () => {
      stopTelling = null;
      void tell().finally(tellLater);
    });
  };
  const tell = async () => {
    const state = await look();
    for (const [session, about] of told) {
      if (about.busy) continue;
      about.busy = true;
      void session.notify("machine/changed", state).then(() => {
        about.busy = false;
      });
    }
  };

  return {
    handlers: {
      "machine/state": async (_, { session }) => {
        if (!told.has(session)) {
          told.set(session, { busy: false });
          session.onEnd(() => told.delete(session));
        }
        tellLater();
        return await look();
      },
    },
    dispose: async () => {
      stopTelling?.();
      gpus.dispose();
    },
  };
};
