// Decides what becomes of a group once all of its records have ended: trained on, replaced by another task, or dropped.
// Pure: it is told scores and answers; nothing is sampled or stored here.

/** Below this spread scores count as equal: the advantages of such a group would be 0. */
const leastSpread = 1e-8;

export type GroupVerdict =
  | { readonly kind: "varied" }
  /** Graded, but all scores are equal: no advantage comes of it. */
  | { readonly kind: "uniform" }
  | { readonly kind: "tooFew"; readonly graded: number; readonly needed: number };

/** @param scores one per record of the group; null = ungraded, failed or cancelled */
export function judgeGroup(scores: readonly (number | null)[], minGroupSize: number): GroupVerdict {
  const graded = scores.filter((score) => score !== null);
  if (graded.length < minGroupSize) return { kind: "tooFew", graded: graded.length, needed: minGroupSize };
  if (scores.length === 1) return { kind: "varied" };
  return Math.max(...graded) - Math.min(...graded) < leastSpread ? { kind: "uniform" } : { kind: "varied" };
}

/** How many graded records a group needs when the recipe does not say. */
export function defaultMinGroupSize(groupSize: number): number {
  return groupSize === 1 ? 1 : 2;
}

/**
 * Which groups of a wave are trained on. Uniform groups were replaced by further tasks, the earliest in data order first,
 * up to the limit; those beyond it stay. The answer depends on the verdicts in data order alone, not on who ended first.
 *
 * @returns one fate per group
 */
export function decideWave(
  verdicts: readonly GroupVerdict[],
  refillLimit: number,
): readonly ("accepted" | "replaced" | "dropped")[] {
  let left = refillLimit;
  return verdicts.map((verdict) => {
    if (verdict.kind === "tooFew") return "dropped";
    if (verdict.kind === "varied" || left === 0) return "accepted";
    left -= 1;
    return "replaced";
  });
}
