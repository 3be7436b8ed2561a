// What a task of type `rollscope` says, and the command line that it means. Pure.

export const taskCommands = ["run", "check"] as const;
export type TaskCommand = (typeof taskCommands)[number];

export interface RecipeTask {
  /** Absent: run. */
  readonly command?: TaskCommand;
  /** Folder with recipe.yaml, absolute or below the workspace folder. */
  readonly recipe: string;
  readonly profile?: string;
  readonly overrides?: Readonly<Record<string, string>>;
}

/** What a person wrote into tasks.json; null where it is no task of ours. */
export function readRecipeTask(written: Readonly<Record<string, unknown>>): RecipeTask | null {
  const { command = "run", recipe } = written;
  const isCommand = taskCommands.some((known) => known === command);
  return typeof recipe === "string" && isCommand ? ({ ...written, recipe } as RecipeTask) : null;
}

/** Arguments of the command line. */
export function taskArguments(recipe: string, task: Pick<RecipeTask, "command" | "profile" | "overrides">): string[] {
  return [
    task.command ?? "run",
    recipe,
    ...(task.profile === undefined ? [] : ["--profile", task.profile]),
    ...Object.entries(task.overrides ?? {}).map(([key, value]) => `--${key}=${value}`),
  ];
}
