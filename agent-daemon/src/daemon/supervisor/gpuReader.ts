// Asks the native helper about GPUs: a process of its own, so that a driver which hangs or crashes takes nothing along. It is there
// only while somebody asks.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { z } from "zod";
import type { DaemonResult } from "../../../../protocol/daemonMethods.ts";
import { machineStateSchema } from "../../../../protocol/daemonMethods.ts";
import type { Clock } from "../../sampling/clock.ts";
import { helperProgram } from "./helper.ts";

type Gpus = DaemonResult<"machine/state">["gpus"];

const answerSchema = z.object({ gpus: machineStateSchema.shape.gpus });

export interface GpuReader {
  /** Empty where there is none, no driver, no helper, or no answer in time. */
  read(): Promise<Gpus>;
  dispose(): void;
}

const answerMilliseconds = 3000;
/** The process ends when nobody has asked for so long; a machine without GPUs is not asked again for longer. */
const idleMilliseconds = 30_000;
const noneMilliseconds = 300_000;

export function createGpuReader(clock: Clock): GpuReader {
  let child: ChildProcess | null = null;
  let waiting: ((gpus: Gpus) => void)[] = [];
  let noneUntil = 0;
  let forgetIdle = () => {};

  const end = () => {
    forgetIdle();
    child?.kill("SIGKILL");
    child = null;
    for (const settle of waiting.splice(0)) settle([]);
  };

  const start = (): ChildProcess => {
    const started = spawn(helperProgram(), ["gpus"], { stdio: ["pipe", "pipe", "ignore"] });
    const over = () => {
      if (child === started) end();
    };
    started.once("error", over);
    started.once("exit", over);
    started.stdin?.on("error", over);
    createInterface(started.stdout!).on("line", (line) => {
      let gpus: Gpus = [];
      try {
        gpus = answerSchema.parse(JSON.parse(line)).gpus;
      } catch {
        // A line that is no answer counts as none.
      }
      if (gpus.length === 0) noneUntil = clock.now() + noneMilliseconds;
      waiting.shift()?.(gpus);
    });
    return started;
  };

  return {
    async read() {
      if (clock.now() < noneUntil) {
        end();
        return [];
      }
      try {
        child ??= start();
      } catch {
        noneUntil = clock.now() + noneMilliseconds;
        return [];
      }
      const asked = child;
      forgetIdle();
      forgetIdle = clock.after(idleMilliseconds, end);
      return await new Promise<Gpus>((resolve) => {
        const forget = clock.after(answerMilliseconds, () => {
          noneUntil = clock.now() + noneMilliseconds;
          end();
        });
        waiting = [
          ...waiting,
          (gpus) => {
            forget();
            resolve(gpus);
          },
        ];
        asked.stdin?.write("\n");
      });
    },
    dispose: end,
  };
}
