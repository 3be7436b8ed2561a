// Finds and loads the native addon, and turns its failures into RollscopeErrors. The one place that knows where it lies.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";
import type { NativeAddon, NativeCancelToken } from "../../../native/binding/index.d.ts";
import { type ErrorCode, errorCodes, RollscopeError } from "../../../protocol/errors.ts";

let loaded: NativeAddon | undefined;

/** What ROLLSCOPE_ENGINE_ISA may say, fewest instructions first; the addon reads it when it picks its kernels. */
const instructionSets = ["sse", "avx2", "avx512"];

function checkInstructionSet(most: string | undefined): void {
  if (most === undefined || most === "" || instructionSets.includes(most)) return;
  throw new RollscopeError("ENGINE_UNSUPPORTED", `ROLLSCOPE_ENGINE_ISA is ${most}, which is no instruction set.`, {
    next: `Set it to ${instructionSets.join(", ")}, or unset it: then the CPU decides.`,
  });
}

/** Errors: ENGINE_LIBRARY_MISSING, ENGINE_UNSUPPORTED. */
export function nativeAddon(): NativeAddon {
  loaded ??= loadAddon();
  return loaded;
}

/** From the sources the folder is three levels up, from the bundle in dist/ one. */
function loadAddon(): NativeAddon {
  const here = dirname(fileURLToPath(import.meta.url));
  const candidates = ["../../..", ".."].map((up) => join(here, up, "native", "build", "rollscope.node"));
  const file = candidates.find((candidate) => existsSync(candidate));
  const next = "Run `npm run setup`, which builds the engine.";
  if (file === undefined) {
    throw new RollscopeError("ENGINE_LIBRARY_MISSING", "The native engine has not been built.", {
      next,
      at: { file: candidates[0] ?? "" },
    });
  }
  checkInstructionSet(process.env["ROLLSCOPE_ENGINE_ISA"]);
  // Threads that wait for each other spin by default for milliseconds. With another process on the machine that costs most of
  // the speed, and a microsecond's patience loses nothing without one. Read by the OpenMP library when it is loaded.
  process.env["GOMP_SPINCOUNT"] ??= "1000";
  try {
    const addon = createRequire(import.meta.url)(file) as NativeAddon;
    // Exit takes the matrix library down; a product that still ran would crash the process instead of ending it.
    if (isMainThread) process.once("exit", () => addon.stop());
    return addon;
  } catch (cause) {
    throw new RollscopeError("ENGINE_LIBRARY_MISSING", "The native engine cannot be loaded.", {
      next,
      at: { file },
      cause,
    });
  }
}

/** Waits for a native promise; its failure becomes a RollscopeError. */
export async function settled<T>(work: Promise<T> | (() => Promise<T>)): Promise<T> {
  try {
    return await (typeof work === "function" ? work() : work);
  } catch (error) {
    throw coded(error);
  }
}

/** Calls native code that answers at once. */
export function answered<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw coded(error);
  }
}

/** Runs native work with a token that follows the signal. Errors: ENGINE_CANCELLED, and those of the work. */
export async function cancellable<T>(
  signal: AbortSignal | undefined,
  work: (cancel: NativeCancelToken) => Promise<T>,
): Promise<T> {
  const token = new (nativeAddon().CancelToken)();
  if (signal?.aborted) throw cancelled();
  const cancel = () => token.cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    return await settled(() => work(token));
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

export function cancelled(): RollscopeError {
  return new RollscopeError("ENGINE_CANCELLED", "The engine's work was cancelled.", {
    next: "Start it again when it is wanted.",
  });
}

/** The error as a RollscopeError where the addon gave it a code. */
export function coded(error: unknown): unknown {
  if (error instanceof RollscopeError || !(error instanceof Error)) return error;
  const { code, next } = error as Error & { code?: unknown; next?: unknown };
  if (typeof code !== "string" || !Object.hasOwn(errorCodes, code)) return error;
  return new RollscopeError(code as ErrorCode, error.message, {
    next: typeof next === "string" ? next : "Report this with the command that led here.",
  });
}
