import { expect, test } from "vitest";
import { type Clock, clockBesideDebugger } from "../../../agent-daemon/src/sampling/clock.ts";
import { manualClock } from "../../support/manualClock.ts";

/** A clock whose thread can stand still: timers that became due meanwhile fire once each when it goes on, as a platform's do. */
function standingClock() {
  let now = 0;
  let timers: { readonly at: number; readonly run: () => void }[] = [];
  const clock: Clock = {
    now: () => now,
    after(milliseconds, run) {
      const timer = { at: now + milliseconds, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((one) => one !== timer);
      };
    },
  };
  const stand = (milliseconds: number) => {
    now += milliseconds;
    const due = timers.filter(({ at }) => at <= now);
    timers = timers.filter(({ at }) => at > now);
    for (const { run } of due) run();
  };
  return { clock, stand };
}

test("a limit passes after its own time beside a debugger as without one", async () => {
  const clock = manualClock();
  const passed: string[] = [];
  clockBesideDebugger(clock, () => true).after(1050, () => passed.push("debugged"));
  clockBesideDebugger(clock, () => false).after(1050, () => passed.push("plain"));
  await clock.advance(1049);
  expect(passed).toEqual([]);
  await clock.advance(1);
  expect(passed.sort()).toEqual(["debugged", "plain"]);
  expect(clock.waiting).toBe(0);
});

test("an hour at a breakpoint uses up no limit of a second, and without a debugger it does", () => {
  const { clock, stand } = standingClock();
  const passed: string[] = [];
  clockBesideDebugger(clock, () => true).after(1000, () => passed.push("debugged"));
  clockBesideDebugger(clock, () => false).after(1000, () => passed.push("plain"));
  stand(3_600_000);
  expect(passed).toEqual(["plain"]);
  for (let tick = 0; tick < 9; tick++) stand(100);
  expect(passed).toEqual(["plain", "debugged"]);
});

test("a limit that is called off beside a debugger never passes", async () => {
  const clock = manualClock();
  const stop = clockBesideDebugger(clock, () => true).after(1000, () => expect.unreachable());
  await clock.advance(550);
  stop();
  await clock.advance(10_000);
  expect(clock.waiting).toBe(0);
});
