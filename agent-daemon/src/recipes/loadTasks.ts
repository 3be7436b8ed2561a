// The tasks of a recipe: both splits, read from its files, named and checked. Order is decided elsewhere (dataOrder.ts).
import { relative } from "node:path";
import type { Split, Task } from "../../../protocol/agent.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import { chooseHeldOut } from "./dataOrder.ts";
import { ensureDataFile, type SourceOptions } from "./models.ts";
import { readTaskFile, type TaskFileRow } from "./taskFile.ts";

export interface RecipeTasks {
  /** In file order. */
  readonly train: readonly Task[];
  /** In file order; empty when there is no evaluation. */
  readonly heldOut: readonly Task[];
}

/** The seed of data order and held-out choice. */
export function dataSeed(config: Pick<RecipeConfig, "data" | "training">): number {
  return config.data.seed ?? config.training.seed;
}

function shown(file: string): string {
  const inside = relative(process.cwd(), file);
  return inside.startsWith("..") ? file : inside;
}

function idOf(row: TaskFileRow, idField: string, file: string): string {
  const id = Object.hasOwn(row.payload, idField) ? row.payload[idField] : undefined;
  if (id === undefined || id === null) return String(row.index);
  if (typeof id === "string" && id !== "") return id;
  if (typeof id === "number" || typeof id === "bigint") return String(id);
  throw new RollscopeError("DATA_ROW_INVALID", `${file}:${row.line}: Field ${idField} does not name the task.`, {
    next: "Give it text or a number, or name another field in data.idField.",
    at: { file, line: row.line },
  });
}

async function readSplit(
  path: string,
  split: Split,
  limit: number | null,
  { data, taskSchema }: Pick<RecipeConfig, "data" | "taskSchema">,
): Promise<Task[]> {
  const file = shown(path);
  const tasks: Task[] = [];
  const lines = new Map<string, number>();
  for await (const row of readTaskFile(file, taskSchema)) {
    if (limit !== null && row.index >= limit) break;
    const id = idOf(row, data.idField, file);
    const earlier = lines.get(id);
    if (earlier !== undefined) {
      throw new RollscopeError(
        "DATA_ROW_INVALID",
        `${file}:${row.line}: Task ${id} stands in line ${earlier} already.`,
        {
          next: `Give every row an ${data.idField} of its own, or name another field in data.idField.`,
          at: { file, line: row.line },
        },
      );
    }
    lines.set(id, row.line);
    tasks.push({ id, split, index: row.index, payload: row.payload });
  }
  if (tasks.length > 0) return tasks;
  throw new RollscopeError("DATA_EMPTY", `The task file ${file} has no rows.`, {
    next: "Write one JSON object a line.",
    at: { file },
  });
}

/**
 * Reads the tasks of both splits.
 *
 * @param folder the recipe's folder
 * @throws DATA_FILE_NOT_FOUND, DATA_ROW_INVALID (file and line), DATA_EMPTY, and as ensureDataFile for hf:// files
 */
export async function loadTasks(
  folder: string,
  config: Pick<RecipeConfig, "data" | "training" | "taskSchema">,
  options: Omit<SourceOptions, "folder"> = {},
): Promise<RecipeTasks> {
  const { data } = config;
  const pathOf = (name: string) => ensureDataFile(name, { ...options, folder });
  const rows = await readSplit(await pathOf(data.train), "train", data.limit, config);
  if (data.heldOut !== null) {
    return { train: rows, heldOut: await readSplit(await pathOf(data.heldOut), "heldOut", null, config) };
  }
  if (data.heldOutCount >= rows.length) {
    throw new RollscopeError(
      "DATA_EMPTY",
      `data.heldOutCount (${data.heldOutCount}) leaves nothing of the ${rows.length} rows of ${data.train} to train on.`,
      { next: "Lower data.heldOutCount." },
    );
  }
  const chosen = new Set(chooseHeldOut(rows.length, data.heldOutCount, dataSeed(config)));
  return {
    train: rows.filter((_, position) => !chosen.has(position)),
    heldOut: rows.filter((_, position) => chosen.has(position)).map((task) => ({ ...task, split: "heldOut" })),
  };
}
