import fc from "fast-check";
import { expect, test } from "vitest";
import { createTurnstile } from "../../../agent-daemon/src/daemon/server/turnstile.ts";

test("lets requests in by turns, never more at once than may be, and says when too many wait", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 200 }), async (script) => {
      const crowds: boolean[] = [];
      const turnstile = createTurnstile({ open: 3, waiting: 5 }, (isCrowded) => crowds.push(isCrowded));
      const begun: number[] = [];
      let asked = 0;
      let left = 0;
      for (const asks of script) {
        if (asks) {
          const own = asked++;
          void turnstile.enter().then(() => begun.push(own));
        } else if (begun.length > left) {
          left += 1;
          turnstile.leave();
        }
        for (let turn = 0; turn < 3; turn++) await Promise.resolve();
        expect(begun).toEqual(Array.from({ length: Math.min(asked, left + 3) }, (_, index) => index));
        expect(crowds.at(-1) ?? false).toBe(asked - begun.length >= 5);
      }
      expect(crowds).toEqual(crowds.map((_, index) => index % 2 === 0));
    }),
  );
});
