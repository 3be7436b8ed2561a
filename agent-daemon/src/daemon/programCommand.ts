// How the daemon starts this program again, for runs and for itself.

/** How this program is started again: `file` with `args` before the words of a command line. */
export interface ProgramCommand {
  readonly file: string;
  readonly args: readonly string[];
}
