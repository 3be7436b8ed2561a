// `rollscope open`: a run's dashboard, one of its trajectories, or a file of trajectories, as a page in a browser on this machine.
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { PageState } from "../../../../protocol/pageHost.ts";
import { connectDaemon } from "../../daemon/client.ts";
import { ensureDaemon } from "../../daemon/server/daemonAddress.ts";
import { daemonHome } from "../../daemon/server/daemonHome.ts";
import { findRun } from "../../runs/runFolder.ts";
import type { ExitName } from "../exitCodes.ts";
import type { Output } from "../output.ts";
import type { DaemonServices } from "./daemon.ts";

/** @param record of a run: its trajectory instead of the dashboard */
export async function openCommand(
  wanted: string,
  record: string | null,
  browser: boolean,
  outputDir: string,
  services: DaemonServices,
  output: Output,
): Promise<ExitName> {
  const state = stateFor(wanted, record, outputDir);
  const socket = await ensureDaemon(daemonHome(services.environment), services.program);
  const client = await connectDaemon(socket, { name: "rollscope", version: services.version });
  try {
    const { url } = await client.call("page/open", { state });
    output.document({ url });
    if (!output.json) output.lines([url]);
    if (browser && output.isTerminal) openBrowser(url);
    return "ok";
  } finally {
    client.dispose();
  }
}

function stateFor(wanted: string, record: string | null, outputDir: string): PageState {
  if (statSync(wanted, { throwIfNoEntry: false })?.isFile() === true) {
    return { page: "inspector", source: { kind: "file", path: resolve(wanted), index: 0 }, view: {} };
  }
  const folder = findRun(wanted, outputDir).path;
  return record === null
    ? { page: "dashboard", folders: [folder], view: {} }
    : { page: "inspector", source: { kind: "record", folder, record }, view: { sampled: true } };
}

/** Does nothing where there is no browser: the address is printed too. */
function openBrowser(url: string): void {
  const program = process.platform === "darwin" ? "open" : "xdg-open";
  const child = spawn(program, [url], { detached: true, stdio: "ignore" });
  child.on("error", () => {});
  child.unref();
}
