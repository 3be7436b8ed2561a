// Which status may follow which. The stores ask here before they change one; nobody else decides it.
import type { RecordStatus, TaskStatus } from "../../../protocol/record.ts";

const ends = ["abandoned", "failed", "cancelled"] as const;

/** From each status, those it may become. `ready` may still be abandoned (too stale); an end is final. */
export const recordTransitions: { readonly [From in RecordStatus]: readonly RecordStatus[] } = {
  created: ["running", ...ends],
  running: ["completed", ...ends],
  completed: ["scoring", ...ends],
  // Back to completed when whoever scored it was lost.
  scoring: ["scored", "completed", ...ends],
  scored: ["ready", "scoring", ...ends],
  ready: ["abandoned", "cancelled"],
  abandoned: [],
  failed: [],
  cancelled: [],
};

/** A task goes back to created when what ran its group was lost. */
export const taskTransitions: { readonly [From in TaskStatus]: readonly TaskStatus[] } = {
  created: ["running"],
  running: ["completed", "created"],
  completed: [],
};
