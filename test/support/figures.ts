// What tests measured: printed, and written down for the bench that runs them again and again (pageBench of test/bench).
import { appendFileSync } from "node:fs";

/** File that figures go to, one JSON object a line. */
export const figuresVariable = "ROLLSCOPE_FIGURES";

/** @param figures by name, with the unit at its end, as in `first_turns_ms` */
export function tellFigures(figures: Readonly<Record<string, number>>): void {
  console.log(
    Object.entries(figures)
      .map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`)
      .join(", "),
  );
  const file = process.env[figuresVariable];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(figures)}\n`);
}
