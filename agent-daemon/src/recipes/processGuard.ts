// What recipe code must not do to the process it runs in: end it, or bring it down with an error that nobody awaits. Both become
// errors that can be told; the guard never decides what happens then.
import { RollscopeError } from "../../../protocol/errors.ts";

export interface Guard {
  dispose(): void;
}

/** Until it is disposed, process.exit() throws RECIPE_CODE_FAILED where it is called. */
export function forbidExit(): Guard {
  const original = process.exit;
  process.exit = () => {
    throw new RollscopeError("RECIPE_CODE_FAILED", "The recipe's code called process.exit().", {
      next: "Throw an error to fail a record; Ctrl-C or `rollscope stop` ends a run.",
    });
  };
  return {
    dispose() {
      process.exit = original;
    },
  };
}

/** Until it is disposed, `told` gets errors thrown in timers and rejections that nobody awaits; the process goes on. */
export function catchStrayErrors(told: (error: unknown) => void): Guard {
  process.on("uncaughtException", told);
  process.on("unhandledRejection", told);
  return {
    dispose() {
      process.off("uncaughtException", told);
      process.off("unhandledRejection", told);
    },
  };
}

/**
 * Whether a stray error can have come from the recipe's code: its stack names a file of the recipe's folder, or it has no stack that
 * names any file. Stacks are mapped to sources, so frames of a recipe name its own files. A coded error is the answer to a call that
 * the recipe made and did not wait for.
 */
export function ofRecipe(thrown: unknown, recipeFolder: string): boolean {
  if (thrown instanceof RollscopeError) return true;
  const stack = thrown instanceof Error ? (thrown.stack ?? "") : "";
  const frames = stack.split("\n").filter((line) => /^\s+at .*(file:|\/)/.test(line) && !line.includes("node:"));
  return (
    frames.length === 0 || frames.some((line) => line.includes(recipeFolder) || /recipe-[0-9a-f]{32}\.mjs/.test(line))
  );
}

/** A stray error as a warning; where its stack names a place, the sentence does too. */
export function strayError(thrown: unknown): RollscopeError {
  return new RollscopeError("RECIPE_CODE_FAILED", `An error was thrown outside of any rollout: ${describe(thrown)}.`, {
    next: "Await or catch everything that rollout starts before it returns.",
    cause: thrown,
  });
}

function describe(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return String(thrown);
    const place = /^\s+at .*$/m.exec(thrown.stack ?? "")?.[0].trim();
    const text = `${thrown.name}: ${thrown.message.replace(/\.$/, "")}`;
    return place === undefined ? text : `${text} ${place}`;
  } catch {
    return "a value that cannot be shown";
  }
}
