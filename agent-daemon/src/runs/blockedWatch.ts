// Watches from another thread whether the main thread still answers. Recipe code that never gives control back (an endless loop in
// evaluate) makes every time-out and Ctrl-C deaf; then this says so, and ends the process when the limit has passed. A debugger
// that holds the thread is no such case. It counts its own ticks, so that a machine that slept is not taken for a blocked thread.
import inspector from "node:inspector";
import { Worker } from "node:worker_threads";

export interface BlockedLimits {
  /** Milliseconds without an answer until it is said, and until the process is killed. */
  readonly warn: number;
  readonly kill: number;
}

const beatMilliseconds = 250;
const tickMilliseconds = 500;

/** Runs in the worker. Messages go to the descriptor itself: streams of a worker pass through the thread that is blocked. */
const watcher = `
const { writeSync } = require("node:fs");
const { workerData } = require("node:worker_threads");
const { shared, tick, warn, kill, warning, killed } = workerData;
const state = new Int32Array(shared);
let beat = -1, ticks = 0;
const say = (text) => { try { writeSync(2, text + "\\n"); } catch {} };
setInterval(() => {
  const now = Atomics.load(state, 0);
  if (now !== beat || Atomics.load(state, 1) === 1) { beat = now; ticks = 0; return; }
  ticks += 1;
  if (ticks === Math.ceil(warn / tick)) say(warning);
  if (ticks < Math.ceil(kill / tick)) return;
  say(killed);
  process.kill(process.pid, "SIGKILL");
}, tick);
`;

/** Until it is disposed. The worker holds neither the process nor the run open. */
export function watchBlocked({ warn, kill }: BlockedLimits): { dispose(): void } {
  const shared = new SharedArrayBuffer(8);
  const state = new Int32Array(shared);
  const beat = () => {
    Atomics.add(state, 0, 1);
    Atomics.store(state, 1, inspector.url() === undefined ? 0 : 1);
  };
  beat();
  const seconds = (milliseconds: number) => `${Math.round(milliseconds / 1000)} s`;
  const worker = new Worker(watcher, {
    eval: true,
    workerData: {
      shared,
      tick: tickMilliseconds,
      warn,
      kill,
      warning:
        `rollscope: recipe code has not given control back for ${seconds(warn)} (an endless loop in rollout or evaluate?). ` +
        `Ctrl-C cannot reach it; Ctrl-\\ ends the run at once. After ${seconds(kill)} it is ended for you.`,
      killed:
        `rollscope: RUN_BLOCKED: recipe code did not give control back for ${seconds(kill)}, so the run was ended. ` +
        "Correct the code, then `rollscope resume` goes on from the last whole checkpoint.",
    },
  });
  worker.unref();
  const timer = setInterval(beat, beatMilliseconds);
  timer.unref();
  return {
    dispose() {
      clearInterval(timer);
      void worker.terminate();
    },
  };
}
