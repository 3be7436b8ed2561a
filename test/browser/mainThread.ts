// What a page's main thread did for each frame, from the browser's own trace, in milliseconds of processor time: another load on
// the machine does not count.
import type { CDPSession, Page } from "playwright-core";

interface TraceEvent {
  readonly name: string;
  readonly cat: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds, as all times of a trace. */
  readonly ts: number;
  readonly dur?: number;
  /** The thread's own time. */
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

/** Work of each frame that was handed over while `act` ran. */
export async function frameWork(page: Page, act: () => Promise<void>): Promise<number[]> {
  const session = await page.context().browser()!.newBrowserCDPSession();
  const events: TraceEvent[] = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...(value as unknown as TraceEvent[])));
  await session.send("Tracing.start", {
    traceConfig: {
      includedCategories: [
        "toplevel",
        "devtools.timeline",
        "disabled-by-default-devtools.timeline",
        "devtools.timeline.frame",
      ],
    },
    transferMode: "ReportEvents",
  });
  await page.evaluate(() => console.timeStamp("begin"));
  await act();
  await page.evaluate(() => console.timeStamp("end"));
  await stop(session);

  const main = pageThread(events);
  const own = events.filter(({ pid, tid }) => pid === main.pid && tid === main.tid).sort((a, b) => a.ts - b.ts);
  const marks = own.filter(({ name }) => name === "TimeStamp").map(({ ts }) => ts);
  const [from, to] = [marks[0]!, marks.at(-1)!];
  const within = (event: TraceEvent) => event.ts >= from && event.ts <= to;
  const commits = own.filter((event) => event.name === "Commit" && within(event)).map(({ ts }) => ts);
  const frames: number[] = [];
  let sum = 0;
  let next = 0;
  for (const task of own) {
    if (task.name !== "RunTask" || !within(task)) continue;
    sum += (task.tdur ?? 0) / 1000;
    if (next >= commits.length || commits[next]! > task.ts + (task.dur ?? 0)) continue;
    // The task that hands a frame over ends what was done for it.
    while (next < commits.length && commits[next]! <= task.ts + (task.dur ?? 0)) next += 1;
    frames.push(sum);
    sum = 0;
  }
  return frames;
}

async function stop(session: CDPSession): Promise<void> {
  const complete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.end");
  await complete;
  await session.detach();
}

/** The thread that the marks were made on. */
function pageThread(events: readonly TraceEvent[]): TraceEvent {
  const mark = events.find(({ name }) => name === "TimeStamp");
  if (mark === undefined) throw new Error("The trace has no mark of the page.");
  return mark;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
