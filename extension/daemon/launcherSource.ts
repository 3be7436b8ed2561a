// Which payload and which Node this window uses, found again at every connection so that a mended setting counts at once.
import { homedir } from "node:os";
import { createLauncher, type Launcher } from "./launch.ts";
import { askVersion, findNode } from "./nodeProgram.ts";
import { findPayload, rollscopeHome } from "./payload.ts";

export interface LauncherSource {
  readonly version: string;
  readonly find: () => Promise<Launcher>;
}

export function createLauncherSource(
  version: string,
  extensionFolder: string,
  readPayloadSetting: () => string,
): LauncherSource {
  return {
    version,
    find: async () => {
      const payload = await findPayload({
        setting: readPayloadSetting(),
        version,
        home: homedir(),
        rollscopeHome: rollscopeHome(process.env, homedir()),
        path: process.env["PATH"] ?? "",
        extensionFolder,
      });
      const node = payload.kind === "command" ? null : await findNode(payload, process.execPath, askVersion);
      return createLauncher(payload, node);
    },
  };
}
