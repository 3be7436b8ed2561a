// What a task of type `rollscope` says, and the command line that it means. Pure.

export interface RecipeTask {
  /** Folder with recipe.yaml, absolute or below the workspace folder. */
  readonly recipe: string;
  readonly profile?: string;
  readonly overrides?: Readonly<Record<string, string>>;
}

/** Arguments of the command line. */
export function runArguments(recipe: string, task: Pick<RecipeTask, "profile" | "overrides">): string[] {
  return [
    "run",
    recipe,
    ...(task.profile === undefined ? [] : ["--profile", task.profile]),
    ...Object.entries(task.overrides ?? {}).map(([key, value]) => `--${key}=${value}`),
  ];
}
