// The machine: Node, free disk, memory against the recipe's model, the clock, and the network when it is asked for.
import { stat, statfs, writeFile } from "node:fs/promises";
import { freemem, totalmem } from "node:os";
import { join } from "node:path";
import { findModel } from "../../engines/modelFiles.ts";
import { loadConfig } from "../../recipes/loadConfig.ts";
import type { DoctorContext, Finding } from "./finding.ts";
import { presentModel } from "./recipeChecks.ts";

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;

export function checkNode(): Finding {
  const major = Number(process.versions.node.split(".")[0]);
  const detail = `${process.version} for ${process.platform}-${process.arch}`;
  if (major < 20) return { status: "failed", detail, next: "Install Node.js 20, 22 or 24." };
  if (major % 2 === 1) return { status: "warning", detail, next: "Use Node.js 20, 22 or 24, which are tested." };
  return { status: "ok", detail, next: null };
}

/** A run writes a checkpoint beside the one before: weights and two moments in single precision each. */
export async function checkDisk(context: DoctorContext): Promise<Finding> {
  const { bavail, bsize } = await statfs(context.scratch);
  const free = bavail * bsize;
  const model = await weightsOf(context);
  const needed = model === null ? 1e9 : model.bytes * 3 * (model.keepLast + 1);
  const detail = `${gigabytes(free)} free; ${model === null ? "a small run" : "checkpoints of the model"} may take ${gigabytes(needed)}`;
  if (free < needed / 4 || free < 1e8)
    return { status: "failed", detail, next: "Free space, or choose another disk with --output-dir." };
  if (free < needed) return { status: "warning", detail, next: "Free space, or lower training.checkpoint.keepLast." };
  return { status: "ok", detail, next: null };
}

export async function checkMemory(context: DoctorContext): Promise<Finding> {
  const constrained = process.constrainedMemory();
  const total = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  const available = Math.min(total, availableMemory());
  const model = await weightsOf(context);
  if (model === null) {
    const detail = `${gigabytes(available)} of ${gigabytes(total)} available`;
    return available < 2e9
      ? { status: "warning", detail, next: "Close other programs; the smallest models take about 4 GB to train." }
      : { status: "ok", detail, next: null };
  }
  // Weights, gradient, two moments and, mostly, a frozen copy; what a micro-batch takes comes on top.
  const needed = model.bytes * (model.hasReference ? 5 : 4);
  const detail = `${gigabytes(available)} of ${gigabytes(total)} available; training ${model.name} takes ${gigabytes(needed)} and its micro-batches`;
  if (needed > total)
    return { status: "failed", detail, next: "Choose a smaller model, or a machine with more memory." };
  if (needed > 0.8 * available)
    return { status: "warning", detail, next: "Close other programs, or lower training.tokenBudget." };
  return { status: "ok", detail, next: null };
}

/** What can be had without driving others to disk, where the system says it. */
function availableMemory(): number {
  const { availableMemory } = process as { availableMemory?: () => number };
  return availableMemory?.() ?? freemem();
}

interface Weights {
  readonly name: string;
  /** In single precision. */
  readonly bytes: number;
  readonly hasReference: boolean;
  readonly keepLast: number;
}

/** null where no recipe is given, or its model is not on this machine. */
async function weightsOf(context: DoctorContext): Promise<Weights | null> {
  if (context.recipe === null) return null;
  const { effective } = await loadConfig(context.recipe, { environment: context.environment });
  const path = effective === null ? null : await presentModel(effective, context);
  if (effective === null || path === null) return null;
  const tensors = [...findModel(path).tensors.values()];
  const elements = tensors.reduce((sum, tensor) => sum + tensor.shape.reduce((product, axis) => product * axis, 1), 0);
  const { kl } = effective.objective;
  return {
    name: effective.model.source,
    bytes: elements * 4,
    hasReference: kl?.base === "ref",
    keepLast: effective.training.checkpoint.keepLast,
  };
}

/** Times of files and of this process must be of one clock: journals and leases compare them. */
export async function checkClock({ scratch }: DoctorContext): Promise<Finding> {
  const file = join(scratch, "clock");
  const before = Date.now();
  await writeFile(file, "");
  const { mtimeMs } = await stat(file);
  const after = Date.now();
  const off = mtimeMs < before ? before - mtimeMs : Math.max(0, mtimeMs - after);
  const year = new Date(after).getUTCFullYear();
  if (year < 2025) return { status: "failed", detail: `This machine thinks it is ${year}.`, next: "Set the clock." };
  if (off > 2000)
    return {
      status: "warning",
      detail: `The disk's clock is ${Math.round(off / 1000)} s off this machine's.`,
      next: "Use a local disk, or synchronise the clocks of both machines.",
    };
  return { status: "ok", detail: `${new Date(after).toISOString()}; the disk agrees`, next: null };
}

export async function checkNetwork({ environment }: DoctorContext): Promise<Finding> {
  const hub = environment["HF_ENDPOINT"] || "https://huggingface.co";
  try {
    const answer = await fetch(new URL("/api/models?limit=1", hub), { signal: AbortSignal.timeout(5000) });
    await answer.body?.cancel();
    if (answer.ok) return { status: "ok", detail: `${new URL(hub).host} answers`, next: null };
    return { status: "warning", detail: `${new URL(hub).host} answers ${answer.status}.`, next: "Try again later." };
  } catch {
    return {
      status: "warning",
      detail: `${new URL(hub).host} cannot be reached.`,
      next: "Only fetching models and data needs it; set HF_ENDPOINT for a mirror, HTTPS_PROXY for a proxy.",
    };
  }
}
