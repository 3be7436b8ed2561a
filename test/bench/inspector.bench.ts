// npm run bench inspector: the inspector's times and sizes over the real page server, against what is promised of them.
import { benchPages } from "./pageFigures.ts";

benchPages("inspector", "test/browser/inspectorSize.test.ts", {
  indexed_first_turns_ms: 300,
  cold_progress_ms: 1000,
  cold_first_turns_ms: 2000,
  cold_index_ms: 15_000,
  nodes: 499,
  heap_mb: 256,
});
