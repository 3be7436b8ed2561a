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
  return new Map(folders.map((folder, index) => [folder, words[index]!.slice(shared).join("")]));
}
