// Answers for a while, then never again: what an endless loop in a recipe does to a run.
import { watchBlocked } from "../../../agent-daemon/src/runs/blockedWatch.ts";

watchBlocked({ warn: 1000, kill: 2000 });
setTimeout(() => {
  process.stdout.write("answered\n");
  for (;;);
}, 3000);
