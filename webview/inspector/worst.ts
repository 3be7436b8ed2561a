// "Jump to the worst token": which end of a column is worst, and the range that a colour scale needs.
import type { InspectorPage } from "./page.ts";
import { tokenScale } from "./tokenScale.ts";
import { inspectorWords } from "./words.ts";

interface Extreme {
  readonly token: number;
  readonly value: number;
}

export interface ColumnRange {
  readonly least: Extreme | null;
  readonly greatest: Extreme | null;
}

export async function columnRange(page: InspectorPage, column: string, row: string | null): Promise<ColumnRange> {
  const source = page.source.peek();
  const ask = (most: "least" | "greatest") => page.client.call("trajectory/extreme", { source, column, row, most });
  const [least, greatest] = await Promise.all([ask("least"), ask("greatest")]);
  return { least, greatest };
}

/** The end that is farthest from the quiet middle; where there is no middle, the loud end. */
export function worstOf(column: string, { least, greatest }: ColumnRange): Extreme | null {
  if (least === null || greatest === null) return least ?? greatest;
  const scale = tokenScale(column, least.value, greatest.value);
  const loud = ({ value }: Extreme) => Math.abs(scale.position(value));
  return loud(least) > loud(greatest) ? least : greatest;
}

export async function jumpToWorst(page: InspectorPage): Promise<void> {
  const column = page.column.peek();
  if (column === null) return;
  try {
    const worst = worstOf(column, await columnRange(page, column, page.view.peek().row));
    if (worst === null) page.say(inspectorWords().noWorst);
    else await page.chooseToken(worst.token);
  } catch (error) {
    page.report(error);
  }
}
