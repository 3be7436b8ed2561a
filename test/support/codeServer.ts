// The server of the editor under test: its settings in a home, and where it listens.
import type { ChildProcess } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TemporaryHome } from "./temporaryHome.ts";

/** Without what asks the network or stands in the way of a test; a test's own settings come on top. */
export const quietSettings = {
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.enableExperiments": false,
  "workbench.settings.enableNaturalLanguageSearch": false,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": false,
  "extensions.ignoreRecommendations": true,
  "npm.fetchOnlinePackageInfo": false,
  "typescript.disableAutomaticTypeAcquisition": true,
  "git.openRepositoryInParentFolders": "never",
};

export function settingsPath(home: TemporaryHome): string {
  return join(home.path, ".local", "share", "code-server", "User", "settings.json");
}

export function writeSettings(home: TemporaryHome, settings: Readonly<Record<string, unknown>>): void {
  mkdirSync(dirname(settingsPath(home)), { recursive: true });
  writeFileSync(settingsPath(home), JSON.stringify(settings, null, 2));
}

/** Resolves when it listens; rejects with what it wrote when it ends before. */
export function listening(server: ChildProcess): Promise<{ readonly address: string; readonly log: () => string }> {
  let written = "";
  return new Promise((resolve, reject) => {
    const read = (text: string) => {
      written += text;
      const address = /listening on (http:\S+)/.exec(written)?.[1];
      if (address !== undefined) resolve({ address, log: () => written });
    };
    server.stdout?.setEncoding("utf8").on("data", read);
    server.stderr?.setEncoding("utf8").on("data", read);
    server.on("error", reject);
    server.on("exit", (code, signal) => reject(new Error(`code-server ended: ${signal ?? code}\n${written}`)));
  });
}
