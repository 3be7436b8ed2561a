// Names of task documents and records, and of their random streams. A stream's name leaves out run and attempt: the same
// task, sample and try draw the same numbers in every run with one seed, and again after a resume.
import { createHash } from "node:crypto";
import type { Split } from "../../../protocol/agent.ts";

export interface TaskPlace {
  readonly split: Split;
  /** Pass over the task file; in evaluation the optimizer step. */
  readonly epoch: number;
  /** Row in the task file. */
  readonly index: number;
}

const letters: { readonly [split in Split]: string } = { train: "t", heldOut: "h" };

function base({ split, epoch, index }: TaskPlace): string {
  return `${letters[split]}${epoch}-${index}`;
}

function inAttempt(attempt: number): string {
  return attempt === 1 ? "" : `-a${attempt}`;
}

/** Unique within a run: `t0-17`, in the second attempt `t0-17-a2`. */
export function taskDocumentId(place: TaskPlace, attempt: number): string {
  return `${base(place)}${inAttempt(attempt)}`;
}

/** Unique within a run: `t0-17-s3`, its second try `t0-17-s3-r1`. */
export function recordId(place: TaskPlace, sample: number, resample: number, attempt: number): string {
  return `${streamKeyOf(place, sample, resample)}${inAttempt(attempt)}`;
}

export function streamKeyOf(place: TaskPlace, sample: number, resample: number): string {
  return `${base(place)}-s${sample}${resample === 0 ? "" : `-r${resample}`}`;
}

/** 53-bit hash of a stream's name: SamplingKey.record. */
export function streamHash(streamKey: string): number {
  const digest = createHash("sha256").update(streamKey).digest();
  return Number(digest.readBigUInt64BE(0) >> 11n);
}

/** Agent.seed: a 53-bit hash of run seed and stream. */
export function agentSeed(seed: number, streamKey: string): number {
  return streamHash(`${seed}/${streamKey}`);
}
