import { expect, it } from "vitest";
import { createPacer } from "../../../extension/views/pacer.ts";

it("works at once, then once more for all that was asked meanwhile, and then rests", async () => {
  const waits: (() => void)[] = [];
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  let times = 0;
  let finish = () => {};
  const pacer = createPacer(
    10,
    () => {
      times++;
      return new Promise<void>((resolve) => {
        finish = resolve;
      });
    },
    (_, then) => {
      waits.push(then);
      return () => {};
    },
  );
  pacer.ask();
  pacer.ask();
  pacer.ask();
  expect(times).toBe(1);
  finish();
  await settled();
  expect(times).toBe(1);
  waits.shift()?.();
  expect(times).toBe(2);
  finish();
  await settled();
  waits.shift()?.();
  expect(times).toBe(2);
  pacer.ask();
  expect(times).toBe(3);
});
