// Turns the first issue of a failed configuration block into the product's error, naming the key. Never decides what is valid.
import type { ZodError } from "zod";
import { type ErrorCode, errorCodes, RollscopeError } from "./errors.ts";

interface ConfigErrorCodes {
  readonly missing: ErrorCode;
  readonly invalid: ErrorCode;
}

/** `block` is the key of the block in recipe.yaml; a refinement may set its own code through `params.code`. */
export function configError(block: string, input: unknown, error: ZodError, codes: ConfigErrorCodes): RollscopeError {
  const issue = error.issues[0];
  if (issue === undefined) {
    return new RollscopeError(codes.invalid, `\`${block}\` is not valid.`, { next: `Correct \`${block}\`.` });
  }
  const unknownKey = issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const key = [block, ...issue.path.map(String), ...unknownKey].join(".");
  const absent = unknownKey.length === 0 && issue.path.length > 0 && valueAt(input, issue.path) === undefined;
  const own = issue.code === "custom" ? issue.params?.["code"] : undefined;
  const code = isErrorCode(own) ? own : absent ? codes.missing : codes.invalid;
  const what = absent && issue.code !== "custom" ? "needs a value" : issue.message;
  return new RollscopeError(code, `${key}: ${what}.`, {
    next: absent ? `Set \`${key}\`.` : `Correct \`${key}\`, or leave it out.`,
    cause: error,
    at: { key },
  });
}

function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(errorCodes, value);
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value: unknown = input;
  for (const key of path) {
    if (value === null || typeof value !== "object") return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}
