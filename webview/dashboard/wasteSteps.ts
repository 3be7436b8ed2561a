// Which steps have a bar of their own. Pure.

/** Steps with a bar: at most so many, evenly, the last one among them. */
export function barSteps(from: number, to: number, most: number): number[] {
  const first = Math.max(1, Math.ceil(from));
  const last = Math.floor(to);
  if (last < first) return [];
  const stride = Math.ceil((last - first + 1) / most);
  const steps: number[] = [];
  for (let step = last; step >= first; step -= stride) steps.unshift(step);
  return steps;
}
