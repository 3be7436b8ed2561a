// What a person chose on the dashboard: kept over reloads, so every value is parsed and falls back by itself.
import { z } from "zod";

export const tabs = ["charts", "checkpoints", "configuration", "log"] as const;
export type Tab = (typeof tabs)[number];

export const mostPicked = 20;

export const viewSchema = z.object({
  tab: z.enum(tabs).catch("charts"),
  range: z.object({ from: z.number(), to: z.number() }).nullable().catch(null),
  smoothing: z.number().min(0).max(0.99).catch(0),
  logarithmic: z.boolean().catch(false),
  /** Metrics with a chart of their own, beyond those that are always there. */
  picked: z.array(z.string()).max(mostPicked).catch([]),
  /** Step whose trajectories are listed. */
  step: z.int().min(0).nullable().catch(null),
});
export type View = z.infer<typeof viewSchema>;

export function readView(kept: Readonly<Record<string, unknown>>): View {
  return viewSchema.parse({
    tab: kept["tab"],
    range: kept["range"],
    smoothing: kept["smoothing"],
    logarithmic: kept["logarithmic"],
    picked: kept["picked"],
    step: kept["step"],
  });
}
