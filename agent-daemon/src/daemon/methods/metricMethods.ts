// Numbers of steps: as buckets for charts, as rows for tables.
import { seriesContent } from "../runs/seriesBuckets.ts";
import { stepRows } from "../runs/stepRows.ts";
import type { CreateMethods } from "./methodTypes.ts";

export const metricMethods: CreateMethods = ({ runs }) => ({
  handlers: {
    "metrics/series": async ({ folder, ...request }, { session }) => {
      const run = await runs.run(folder);
      return session.bulk(seriesContent(run.metrics, run.fold, request));
    },
    "metrics/rows": async ({ folder, from, limit }) => {
      const run = await runs.run(folder);
      return stepRows(run.metrics, run.fold, from, limit);
    },
  },
});
