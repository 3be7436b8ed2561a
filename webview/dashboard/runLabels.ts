// Short names of runs that are shown together: what tells their folders apart. Pure.

/** By folder: its own name, without the words that all of them begin with. */
export function runLabels(folders: readonly string[]): ReadonlyMap<string, string> {
  const names = folders.map(
    (folder) =>
      folder
        .split(/[\\/]/)
        .filter((part) => part !== "")
        .at(-1) ?? folder,
  );
  const parted = new Set(names).size === names.length ? names : folders;
  const words = parted.map((name) => name.split(/(?<=[-_./\\])/));
  let shared = 0;
  if (words.length > 1) {
    while (words.every((list) => list.length > shared + 1 && list[shared] === words[0]![shared])) shared += 1;
  }
  return new Map(folders.map((folder, index) => [folder, withClock(words[index]!.slice(shared).join(""))]));
}

/** A run's folder ends with when it began, 20261201-052013: written as people write a time. */
function withClock(label: string): string {
  return label.replace(
    /(?:(\d{4})(\d\d)(\d\d)-)?\b(\d\d)(\d\d)(\d\d)$/,
    (_, year, month, day, hour, minute, second) => {
      const clock = `${hour}:${minute}:${second}`;
      return year === undefined ? clock : `${year}-${month}-${day} ${clock}`;
    },
  );
}
