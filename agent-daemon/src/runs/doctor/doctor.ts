// The self-check: each thing that a run needs is tried by using it, one after the other, and every finding says what to do next.
// Changes nothing outside a temporary folder; what it found wrong never stops the checks that follow.

import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { DaemonResult } from "../../../../protocol/daemonMethods.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { checkAddon, checkEngine } from "./engineChecks.ts";
import type { DoctorContext, Finding } from "./finding.ts";
import { checkClock, checkDisk, checkMemory, checkNetwork, checkNode } from "./machineChecks.ts";
import { checkModel, checkTypeScript } from "./recipeChecks.ts";
import { checkBlobs, checkStore } from "./storeChecks.ts";

export type DoctorItem = DaemonResult<"doctor">["items"][number];

type Check = (context: DoctorContext) => Promise<Finding> | Finding;

const checks: readonly (readonly [id: string, title: string, check: Check])[] = [
  ["node", "Node.js", checkNode],
  ["addon", "Native engine", checkAddon],
  ["engine", "Forward, generation and gradient", checkEngine],
  ["store", "Record store", checkStore],
  ["blobs", "Column files", checkBlobs],
  ["disk", "Free disk", checkDisk],
  ["model", "Model", checkModel],
  ["memory", "Memory", checkMemory],
  ["types", "TypeScript", checkTypeScript],
  ["clock", "Clock", checkClock],
];

/** Longest that one check may take: a disk that hangs must not hang the doctor. */
const longest = 10_000;

/** Runs every check; `tell` hears of each when it begins (status running) and when it is done. */
export async function examine(
  given: Omit<DoctorContext, "scratch" | "writable">,
  tell: (item: DoctorItem) => void,
): Promise<DoctorItem[]> {
  const place = await scratchFolder(given.outputDir);
  const items: DoctorItem[] = [];
  try {
    for (const [id, title, check] of given.network ? [...checks, network] : checks) {
      tell({ id, title, status: "running", detail: "", next: null });
      const item = { id, title, ...(await found(check, { ...given, ...place })) };
      items.push(item);
      tell(item);
    }
    return items;
  } finally {
    await rm(place.scratch, { recursive: true, force: true });
  }
}

const network = ["network", "Network", checkNetwork] as const;

/** Beside the runs where that can be written; else the store check says so, and the others use the system's own. */
async function scratchFolder(outputDir: string): Promise<{ scratch: string; writable: boolean }> {
  let folder = outputDir;
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  try {
    return { scratch: await mkdtemp(join(folder, ".rollscope-doctor-")), writable: true };
  } catch {
    return { scratch: await mkdtemp(join(tmpdir(), "rollscope-doctor-")), writable: false };
  }
}

async function found(check: Check, context: DoctorContext): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding>((resolve) => {
    timer = setTimeout(
      () =>
        resolve({
          status: "failed",
          detail: `No answer in ${longest / 1000} s.`,
          next: "See whether the disk or network hangs.",
        }),
      longest,
    );
  });
  try {
    return await Promise.race([Promise.resolve().then(() => check(context)), late]);
  } catch (error) {
    return failure(error);
  } finally {
    clearTimeout(timer);
  }
}

function failure(error: unknown): Finding {
  if (error instanceof RollscopeError)
    return { status: "failed", detail: `${error.message} [${error.code}]`, next: error.next };
  return {
    status: "failed",
    detail: error instanceof Error ? error.message : String(error),
    next: "Run again with ROLLSCOPE_DEBUG=1 and report what it says.",
  };
}
