// Recipes in folders: which folders hold one, what each is called and says of itself. Reads their configuration, never their code.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { DaemonResult } from "../../../protocol/daemonMethods.ts";
import { loadConfig } from "./loadConfig.ts";
import { shippedPath } from "./shippedFiles.ts";

type Listed = DaemonResult<"recipes/list">["recipes"][number];

const deepest = 3;
const passedOver = new Set(["node_modules", "runs", "dist", "build", "templates"]);
/** Workspaces can hold anything; a list of recipes is for people. */
const mostFolders = 5000;

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** Folders with a recipe.yaml, in `root` and three levels below it, sorted by path. */
function findRecipes(root: string): string[] {
  const found: string[] = [];
  let looked = 0;
  const visit = (folder: string, depth: number) => {
    if (looked++ > mostFolders) return;
    if (isFile(join(folder, "recipe.yaml"))) {
      found.push(folder);
      return;
    }
    if (depth === deepest) return;
    try {
      for (const entry of readdirSync(folder, { withFileTypes: true }))
        if (entry.isDirectory() && !entry.name.startsWith(".") && !passedOver.has(entry.name))
          visit(join(folder, entry.name), depth + 1);
    } catch {
      // A folder that may not be read has no recipe for this person.
    }
  };
  visit(root, 0);
  return found.sort();
}

/** First paragraph of README.md, without its heading. */
function descriptionOf(folder: string): string {
  const readme = join(folder, "README.md");
  if (!isFile(readme)) return "";
  const paragraphs = readFileSync(readme, "utf8").split(/\r?\n\s*\r?\n/);
  const first = paragraphs.find((text) => text.trim() !== "" && !text.startsWith("#")) ?? "";
  return first
    .replace(/\s+/g, " ")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .trim()
    .slice(0, 300);
}

async function describe(folder: string, shipped: boolean): Promise<Listed> {
  const { effective, problems } = await loadConfig(folder);
  const errors = problems.filter((problem) => problem.severity === "error").length;
  const fallback = folder.slice(Math.max(folder.lastIndexOf("/"), folder.lastIndexOf("\\")) + 1);
  return { folder, name: effective?.name ?? fallback, description: descriptionOf(folder), shipped, problems: errors };
}

/** Recipes of these folders, and those that come with Rollscope. */
export async function listRecipes(folders: readonly string[]): Promise<Listed[]> {
  const shipped = shippedPath("recipes");
  const own = new Set(folders.flatMap((folder) => findRecipes(resolve(folder))));
  const brought = findRecipes(shipped);
  return [
    ...(await Promise.all([...own].filter((folder) => !brought.includes(folder)).map((each) => describe(each, false)))),
    ...(await Promise.all(brought.map((each) => describe(each, true)))),
  ];
}
