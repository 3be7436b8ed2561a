// `rollscope daemon`: the daemon in the foreground or started beside, its end, its state, and the bridge that joins a client's
// streams to it.
import type { Readable, Writable } from "node:stream";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { connectDaemon } from "../../daemon/client.ts";
import type { ProgramCommand } from "../../daemon/programCommand.ts";
import { startDaemon } from "../../daemon/serve.ts";
import { bridge } from "../../daemon/server/bridge.ts";
import { ensureDaemon, runningDaemon } from "../../daemon/server/daemonAddress.ts";
import { daemonHome } from "../../daemon/server/daemonHome.ts";
import type { Clock } from "../../sampling/clock.ts";
import type { ExitName } from "../exitCodes.ts";
import type { Output } from "../output.ts";
import { formatDuration } from "../terminal/numbers.ts";
import type { OnSignal } from "./run.ts";

export interface DaemonServices {
  readonly version: string;
  readonly clock: Clock;
  readonly onSignal: OnSignal;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** How this program is started again. */
  readonly program: ProgramCommand;
  /** For the bridge. */
  readonly input: Readable;
  readonly output: Writable;
}

const actions = ["start", "stop", "status", "stdio"] as const;
type DaemonAction = (typeof actions)[number];

function isAction(word: string): word is DaemonAction {
  return (actions as readonly string[]).includes(word);
}

export async function daemonCommand(
  action: string,
  background: boolean,
  services: DaemonServices,
  output: Output,
): Promise<ExitName> {
  if (!isAction(action)) {
    throw new RollscopeError("COMMAND_INVALID", `The daemon has no action ${action}.`, {
      next: `Use one of ${actions.join(", ")}.`,
      at: { argument: action },
    });
  }
  switch (action) {
    case "start":
      return background ? await startBeside(services, output) : await serveHere(services, output);
    case "stop":
      return await stop(services, output);
    case "status":
      return await status(services, output);
    case "stdio": {
      const socket = await ensureDaemon(daemonHome(services.environment), services.program);
      await bridge(socket, services.input, services.output);
      return "ok";
    }
  }
}

async function serveHere(services: DaemonServices, output: Output): Promise<ExitName> {
  const { version, clock, program, environment } = services;
  const home = daemonHome(environment);
  const daemon = await startDaemon({ home, version, clock, program, echo: (line) => output.note(line) });
  output.document({ socket: daemon.socket, pid: daemon.pid });
  const off = services.onSignal(() => void daemon.stop("a signal"));
  try {
    await daemon.ended;
  } finally {
    off();
  }
  return "ok";
}

async function startBeside(services: DaemonServices, output: Output): Promise<ExitName> {
  const socket = await ensureDaemon(daemonHome(services.environment), services.program);
  output.document({ socket });
  if (!output.json) output.lines([`The daemon listens at ${socket}.`]);
  return "ok";
}

/** The client of a daemon that runs already. @throws DAEMON_UNREACHABLE */
async function connectRunning(services: DaemonServices) {
  const home = daemonHome(services.environment);
  const socket = await runningDaemon(home);
  if (socket === null) {
    throw new RollscopeError("DAEMON_UNREACHABLE", "No daemon is running.", {
      next: `Start one with \`rollscope daemon --background\`; ${home.log} says why the last one ended.`,
    });
  }
  return await connectDaemon(socket, { name: "rollscope", version: services.version });
}

async function stop(services: DaemonServices, output: Output): Promise<ExitName> {
  const client = await connectRunning(services);
  try {
    await client.call("shutdown", {});
    await client.ended;
    output.document({ pid: client.hello.pid, stopped: true });
    if (!output.json) output.lines([`The daemon (process ${client.hello.pid}) ends; runs go on.`]);
    return "ok";
  } finally {
    client.dispose();
  }
}

async function status(services: DaemonServices, output: Output): Promise<ExitName> {
  const client = await connectRunning(services);
  try {
    const { pid, version, started } = client.hello;
    const { runs } = await client.call("runs/watch", {});
    const live = runs.filter((run) => run.pid !== null);
    const home = daemonHome(services.environment);
    output.document({ pid, version, started, log: home.log, runs: runs.length, live });
    if (output.json) return "ok";
    const since = formatDuration(services.clock.now() - started);
    output.lines([
      `Daemon ${version}, process ${pid}, for ${since}. It knows ${runs.length} runs, ${live.length} of them going on.`,
      ...live.map((run) => `  ${run.folder}: ${run.status}, step ${run.step}/${run.steps}`),
      `Log: ${home.log}`,
    ]);
    return "ok";
  } finally {
    client.dispose();
  }
}
