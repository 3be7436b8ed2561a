// What a person chose in the inspector: kept over reloads, so every value is parsed and falls back by itself.
import { z } from "zod";
import { trajectorySourceSchema } from "../../protocol/trajectoryView.ts";

export const modes = ["chat", "raw", "details", "siblings"] as const;

const viewSchema = z.object({
  turn: z.int().min(0).catch(0),
  /** To begin at the first turn that was sampled, once that is known. */
  sampled: z.boolean().catch(false),
  /** Cell of the chosen turn's strip: its images, then its tokens. */
  cell: z.int().min(0).catch(0),
  /** Token column that colours the strip; null: the first that there is. */
  column: z.string().nullable().catch(null),
  /** Training row whose numbers are shown; null: the last. */
  row: z.string().nullable().catch(null),
  branch: z.int().min(0).catch(0),
  mode: z.enum(modes).catch("chat"),
  /** Compared with these; empty: with the others of its group. */
  against: z.array(trajectorySourceSchema).max(8).catch([]),
  search: z.string().catch(""),
  /** All digits of a token's numbers. */
  exact: z.boolean().catch(false),
});
export type View = z.infer<typeof viewSchema>;

export function readView(kept: Readonly<Record<string, unknown>>): View {
  const keys = Object.keys(viewSchema.shape);
  return viewSchema.parse(Object.fromEntries(keys.map((key) => [key, kept[key]])));
}
