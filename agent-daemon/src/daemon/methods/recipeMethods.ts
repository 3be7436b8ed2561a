// Methods about recipes: list, check, values in force, create, and the self-check. None of them runs a recipe's code in the daemon:
// the self-check uses engine and code, so it runs in a process of its own.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { z } from "zod";
import { doctorItemSchema } from "../../../../protocol/daemonMethods.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { createRecipe } from "../../recipes/createRecipe.ts";
import { checkEditedRecipe, valuesInForce } from "../../recipes/diagnostics.ts";
import { listRecipes } from "../../recipes/listRecipes.ts";
import type { ProgramCommand } from "../programCommand.ts";
import type { CreateMethods, MethodCall } from "./methodTypes.ts";

const reportSchema = z.object({ items: z.array(doctorItemSchema) });

async function doctor(recipe: string | null, { session, signal }: MethodCall, program: ProgramCommand) {
  const words = ["doctor", ...(recipe === null ? [] : [recipe]), "--json", "--progress"];
  const child = spawn(program.file, [...program.args, ...words], { stdio: ["ignore", "pipe", "pipe"], signal });
  const out: Buffer[] = [];
  const rest: string[] = [];
  child.stdout.on("data", (bytes: Buffer) => out.push(bytes));
  createInterface({ input: child.stderr }).on("line", (line) => {
    const item = readItem(line);
    if (item === null) rest.push(line);
    else void session.notify("doctor/progress", item);
  });
  const ended = await new Promise<string>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, by) => resolve(by ?? `exit ${code}`));
  });
  const report = reportSchema.safeParse(parse(Buffer.concat(out).toString("utf8")));
  if (report.success) return report.data;
  throw new RollscopeError(
    "DOCTOR_FAILED",
    `The self-check ended early (${ended}). ${rest.slice(-3).join(" ")}`.trim(),
    {
      next: "Run `rollscope doctor` in a terminal; it shows how far it gets.",
    },
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function readItem(line: string) {
  const item = doctorItemSchema.safeParse(parse(line));
  return item.success ? item.data : null;
}

export const recipeMethods: CreateMethods = ({ program }) => ({
  handlers: {
    "recipes/list": async ({ folders }) => ({ recipes: await listRecipes(folders) }),
    "recipe/check": checkEditedRecipe,
    "recipe/values": valuesInForce,
    "recipe/create": async ({ template, folder, name }) => createRecipe(template, folder, name),
    doctor: async ({ recipe }, call) => await doctor(recipe, call, program),
  },
});
