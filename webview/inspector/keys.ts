// The keys that work everywhere on the page but in fields and dialogs.
import type { InspectorPage } from "./page.ts";
import { modes } from "./view.ts";
import { jumpToWorst } from "./worst.ts";

export const searchId = "inspector-search";

/** @returns ends it */
export function listenForKeys(page: InspectorPage): () => void {
  const stepTurn = (by: number) => {
    const order = page.order.peek();
    const place = Math.max(0, Math.min(order.count - 1, order.placeOf(page.view.peek().turn) + by));
    if (order.count > 0) page.chooseTurn(order.turnAt(place));
  };
  const stepCell = (by: number) => {
    const { turn, cell } = page.view.peek();
    const found = page.turns.peek().get(turn);
    if (found === undefined) return;
    const images = found.parts.filter((part) => part.kind === "image").length;
    const count = images + (found.tokens?.length ?? 0);
    page.hover.value = null;
    page.change({ cell: Math.max(0, Math.min(count - 1, cell + by)) });
  };
  const actions: Readonly<Record<string, () => void>> = {
    j: () => stepTurn(1),
    k: () => stepTurn(-1),
    l: () => stepCell(1),
    h: () => stepCell(-1),
    "/": () => document.getElementById(searchId)?.focus(),
    n: () => void page.search.step(1),
    N: () => void page.search.step(-1),
    g: () => {
      page.dialog.value = "go";
    },
    w: () => void jumpToWorst(page),
    "[": () => page.stepTrajectory(-1),
    "]": () => page.stepTrajectory(1),
    "?": () => {
      page.dialog.value = "help";
    },
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || page.outline.peek() === null) return;
    const [target] = event.composedPath();
    if (target instanceof Element && target.closest("input, textarea, select, [contenteditable], dialog") !== null)
      return;
    // A dropdown chooses by first letters.
    if (event.composedPath().some((part) => part instanceof Element && part.localName === "vscode-dropdown")) return;
    const mode = modes[Number(event.key) - 1];
    const action = mode === undefined ? actions[event.key] : () => page.change({ mode });
    if (action === undefined) return;
    event.preventDefault();
    action();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}
