// Which key moves what on a chart. The chart does it; docs/EDITOR.md lists them, and a test compares.

export type ChartMove =
  | "back"
  | "on"
  | "farBack"
  | "farOn"
  | "first"
  | "last"
  | "nearer"
  | "farther"
  | "whole"
  | "leave"
  | "open";

/** By KeyboardEvent.key. With Shift, `back` and `on` pan. */
export const chartKeys: Readonly<Record<string, ChartMove>> = {
  ArrowLeft: "back",
  ArrowRight: "on",
  PageUp: "farBack",
  PageDown: "farOn",
  Home: "first",
  End: "last",
  "+": "nearer",
  "=": "nearer",
  "-": "farther",
  "0": "whole",
  Escape: "leave",
  Enter: "open",
  " ": "open",
};
