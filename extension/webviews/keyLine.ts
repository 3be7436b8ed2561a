// Finds the line of a key in recipe.yaml, so that an advisory's link leads there. Pure; a rough reading that needs no parser.

/** Line from 0 of `a.b.c`, or of the longest part of it that is there; null when not even `a` is. */
export function keyLine(text: string, key: string): number | null {
  const lines = text.split(/\r?\n/);
  let from = 0;
  let indent = -1;
  let found: number | null = null;
  for (const part of key.split(".")) {
    let at: number | null = null;
    let level: number | null = null;
    for (let index = from; index < lines.length; index++) {
      const match = /^( *)(?:"([^"]*)"|'([^']*)'|([^\s#'":][^:#]*?))\s*:(?:\s|$)/.exec(lines[index]!);
      if (match === null) continue;
      const depth = match[1]!.length;
      if (depth <= indent) break;
      level ??= depth;
      if (depth === level && (match[2] ?? match[3] ?? match[4]) === part) {
        at = index;
        indent = depth;
        break;
      }
    }
    if (at === null) return found;
    found = at;
    from = at + 1;
  }
  return found;
}
