// Small fixed hashes for choices that must come out the same in every run.
import { createHash } from "node:crypto";

/** 32 bits of a text's SHA-256. */
export function hash32(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE(0);
}
