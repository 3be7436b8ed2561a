// Finds the program that the daemon and runs consist of. Looks in a fixed order and says where it looked; never downloads, never
// falls back silently from a place that the person chose.
import { constants } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { refuse } from "./fault.ts";

/** `script`: to be run by Node. `command`: runs by itself. */
export type Payload =
  | { readonly kind: "script"; readonly origin: PayloadOrigin; readonly file: string; readonly node: string | null }
  | { readonly kind: "command"; readonly origin: PayloadOrigin; readonly file: string };
export type PayloadOrigin = "setting" | "home" | "path" | "extension";

export interface PayloadPlaces {
  /** Setting `rollscope.payload`; empty: none. */
  readonly setting: string;
  readonly version: string;
  readonly home: string;
  /** `$ROLLSCOPE_HOME`, else ~/.rollscope. */
  readonly rollscopeHome: string;
  /** PATH. */
  readonly path: string;
  readonly extensionFolder: string;
}

/** `$ROLLSCOPE_HOME`, else ~/.rollscope, as the payload itself finds it. */
export function rollscopeHome(environment: Readonly<Record<string, string | undefined>>, home: string): string {
  return environment["ROLLSCOPE_HOME"] || join(home, ".rollscope");
}

/** Where a payload of a version lies once it is installed. */
export function installedPayload(rollscopeHome: string, version: string): string {
  return join(rollscopeHome, "payload", version);
}

/**
 * First payload in the order setting, ~/.rollscope/payload/<version>, PATH, extension folder.
 *
 * @throws PAYLOAD_INVALID the chosen place holds none; PAYLOAD_NOT_FOUND there is none anywhere
 */
export async function findPayload(places: PayloadPlaces): Promise<Payload> {
  const setting = places.setting.trim();
  if (setting !== "") {
    const path = setting.startsWith("~/") ? join(places.home, setting.slice(2)) : setting;
    const chosen = await payloadAt(path, "setting");
    if (chosen !== null) return chosen;
    refuse(
      "PAYLOAD_INVALID",
      `The setting rollscope.payload names ${path}, which holds no payload.`,
      "Choose the folder that `npm run package` unpacks to, or clear the setting.",
    );
  }
  const installed = installedPayload(places.rollscopeHome, places.version);
  const inExtension = join(places.extensionFolder, "payload");
  const found =
    (await payloadAt(installed, "home")) ??
    (await payloadOnPath(places.path)) ??
    (await payloadAt(inExtension, "extension"));
  if (found !== null) return found;
  return refuse(
    "PAYLOAD_NOT_FOUND",
    `No Rollscope payload was found: not in ${installed}, not as \`rollscope\` on PATH, not in ${inExtension}.`,
    "Run Rollscope: Check Environment, which installs a payload file or takes a folder that you choose.",
  );
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() ?? false;
}

/** A folder with a payload in it, or the program itself. */
export async function payloadAt(path: string, origin: PayloadOrigin): Promise<Payload | null> {
  const entry = await stat(path).catch(() => null);
  if (entry === null) return null;
  if (entry.isFile()) return programAt(path, origin);
  for (const inside of [join("dist", "cli.mjs"), "cli.mjs"]) {
    const file = join(path, inside);
    if (await isFile(file)) return { kind: "script", origin, file, node: await nodeIn(path) };
  }
  return null;
}

async function programAt(path: string, origin: PayloadOrigin): Promise<Payload | null> {
  const file = await realpath(path);
  if (/\.[cm]?js$/.test(file)) return { kind: "script", origin, file, node: null };
  const runs = await access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
  return runs ? { kind: "command", origin, file } : null;
}

async function nodeIn(folder: string): Promise<string | null> {
  for (const inside of [join("node", "bin", "node"), join("bin", "node"), join("node", "node.exe")]) {
    const file = join(folder, inside);
    if (await isFile(file)) return file;
  }
  return null;
}

async function payloadOnPath(path: string): Promise<Payload | null> {
  for (const folder of path.split(delimiter)) {
    if (folder === "") continue;
    const file = join(folder, "rollscope");
    if (await isFile(file)) {
      const found = await programAt(file, "path");
      if (found !== null) return found;
    }
  }
  return null;
}
