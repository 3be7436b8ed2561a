// Which Node runs the payload: the system's when it is new enough, else the payload's, else the editor's own executable.
import { execFile } from "node:child_process";
import { refuse } from "./fault.ts";
import type { Payload } from "./payload.ts";

export interface NodeProgram {
  readonly file: string;
  readonly version: string;
  readonly origin: "system" | "payload" | "editor";
  /** To be added to the environment of what it runs. */
  readonly environment: Readonly<Record<string, string>>;
}

export const leastNodeMajor = 20;

/** What a program answers to `--version`, without the v; null when it cannot be run. */
export type AskVersion = (file: string, environment: Readonly<Record<string, string>>) => Promise<string | null>;

export const askVersion: AskVersion = (file, environment) =>
  new Promise((resolve) => {
    const options = { timeout: 10_000, env: { ...process.env, ...environment } };
    execFile(file, ["--version"], options, (error, stdout) => {
      const version = /^v(\d+\.\d+\.\d+)/.exec(stdout.trim());
      resolve(error !== null || version === null ? null : version[1]!);
    });
  });

/** @throws NODE_NOT_FOUND */
export async function findNode(payload: Payload, editorProgram: string, ask: AskVersion): Promise<NodeProgram> {
  const asEditor = { ELECTRON_RUN_AS_NODE: "1" };
  const candidates: Omit<NodeProgram, "version">[] = [{ file: "node", origin: "system", environment: {} }];
  if (payload.kind === "script" && payload.node !== null) {
    candidates.push({ file: payload.node, origin: "payload", environment: {} });
  }
  candidates.push({ file: editorProgram, origin: "editor", environment: asEditor });
  const seen: string[] = [];
  for (const candidate of candidates) {
    const version = await ask(candidate.file, candidate.environment);
    if (version !== null && Number(version.split(".")[0]) >= leastNodeMajor) return { ...candidate, version };
    seen.push(`${candidate.file} ${version === null ? "cannot be run" : `is ${version}`}`);
  }
  return refuse(
    "NODE_NOT_FOUND",
    `No Node ${leastNodeMajor} or newer was found: ${seen.join("; ")}.`,
    `Install Node ${leastNodeMajor}, 22 or 24, so that \`node --version\` works in a terminal, and reload the window.`,
  );
}
