// npm run bench dashboard: main-thread work a frame while a million points are panned, against what is promised of it.
import { benchPages } from "./pageFigures.ts";

benchPages("dashboard", "test/browser/dashboardSize.test.ts", { pan_frame_p95_ms: 8 });
