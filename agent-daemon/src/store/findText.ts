// Finds a text as it was typed, whatever its case, and shows what stands around it. Every search in trajectories is by this.

export interface TextHit {
  /** Character at which it begins. */
  readonly at: number;
  readonly excerpt: string;
}

/** Characters around a hit. */
const margin = 40;

/** `most`: hits after which it stops; a single letter in megabytes of text has no end of them. */
export function textFinder(text: string): (within: string, most?: number) => TextHit[] {
  const pattern = new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "giu");
  const lower = text.toLowerCase();
  return (within, most = Number.POSITIVE_INFINITY) => {
    const hits: TextHit[] = [];
    // Many times faster than the pattern where there is nothing to find.
    if (!within.toLowerCase().includes(lower)) return hits;
    for (const { index, 0: hit } of within.matchAll(pattern)) {
      if (hits.length >= most) break;
      hits.push({ at: index, excerpt: within.slice(Math.max(0, index - margin), index + hit.length + margin) });
    }
    return hits;
  };
}
