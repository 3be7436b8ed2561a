// What a page says when something was refused, and how far it is with being opened.
import { PageError } from "./rpc.ts";

export interface Problem {
  readonly message: string;
  readonly next: string;
}

export type Opening =
  | { readonly state: "opening" }
  | { readonly state: "open" }
  | ({ readonly state: "failed" } & Problem);

export function problemOf(error: unknown): Problem {
  if (error instanceof PageError) return { message: error.message, next: error.next };
  return { message: error instanceof Error ? error.message : String(error), next: "" };
}
