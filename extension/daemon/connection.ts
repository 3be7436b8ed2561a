// The connection to the daemon: opens it on demand, says hello, sends typed requests, hands notifications on, and comes back after a
// loss with growing pauses. Parses whatever arrives. Knows nothing of the editor's windows.
import {
  type CancellationToken,
  createMessageConnection,
  ErrorCodes,
  type MessageConnection,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";
import {
  type DaemonMethod,
  type DaemonNotification,
  type DaemonParams,
  type DaemonResult,
  daemonMethods,
  daemonNotifications,
  type HelloResult,
  type NotificationOf,
  protocolVersion,
} from "../../protocol/daemonMethods.ts";
import { type ErrorCode, errorCodes, RollscopeError } from "../../protocol/errors.ts";
import { type BulkChannel, openBulkChannel } from "./bulkChannel.ts";
import { asFault, CancelledError, type Fault, isCancelled, refuse } from "./fault.ts";
import type { Child, Launcher } from "./launch.ts";

export type ConnectionState =
  | { readonly kind: "idle" }
  | { readonly kind: "connecting" }
  | { readonly kind: "connected"; readonly hello: HelloResult }
  /** Lost or not reached; tried again by itself. */
  | { readonly kind: "waiting"; readonly fault: Fault; readonly retryInMilliseconds: number }
  /** Something is missing or does not fit; looked for again now and then, and by the next request. */
  | { readonly kind: "failed"; readonly fault: Fault };

export interface Log {
  info(line: string): void;
  warn(line: string): void;
  error(line: string): void;
}

export interface ConnectionServices {
  readonly version: string;
  readonly findLauncher: () => Promise<Launcher>;
  readonly log: Log;
  /** Calls back after so many milliseconds; returns how to forget it. */
  readonly later: (milliseconds: number, then: () => void) => () => void;
}

interface Open {
  readonly rpc: MessageConnection;
  readonly child: Child;
  readonly hello: HelloResult;
  readonly launcher: Launcher;
  bulk: Promise<BulkChannel> | null;
}

const bulkAnswerSchema = daemonMethods["metrics/series"].result;

/** Pauses before the tries after a loss, in milliseconds; the last one repeats. */
const pauses = [250, 1000, 2000, 5000, 10_000, 20_000] as const;
/** Between the tries while something is missing that only a person can bring. */
const lookAgainMilliseconds = 15_000;
const helloMilliseconds = 20_000;

export class DaemonConnection {
  #services: ConnectionServices;
  #state: ConnectionState = { kind: "idle" };
  #opening: Promise<Open> | null = null;
  #open: Open | null = null;
  #losses = 0;
  /** So that the log tells each once. */
  #lastFault = "";
  #forgetRetry: (() => void) | null = null;
  #disposed = false;
  #stateListeners = new Set<(state: ConnectionState) => void>();
  #listeners = new Map<DaemonNotification, Set<(value: never) => void>>();

  constructor(services: ConnectionServices) {
    this.#services = services;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  onState(listener: (state: ConnectionState) => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  on<N extends DaemonNotification>(name: N, listener: (value: NotificationOf<N>) => void): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Opens the connection, or waits for the one that is being opened. */
  async connect(): Promise<HelloResult> {
    return (await this.#opened()).hello;
  }

  /**
   * @throws what the daemon refused, as an error that `asFault` reads; CancelledError when the token was cancelled
   */
  async request<M extends DaemonMethod>(
    method: M,
    params: DaemonParams<M>,
    token?: CancellationToken,
  ): Promise<DaemonResult<M>> {
    return daemonMethods[method].result.parse(await this.relay(method, params, token)) as DaemonResult<M>;
  }

  /** As `request`, with the answer as it came: for pages, which parse it themselves. */
  async relay(method: DaemonMethod, params: unknown, token?: CancellationToken): Promise<unknown> {
    const { rpc } = await this.#opened();
    return await this.#send(rpc, method, params, token);
  }

  /** A request whose answer is a bulk frame: its bytes, as they came. */
  async requestBulk(
    method: DaemonMethod,
    params: unknown,
    token?: CancellationToken,
  ): Promise<{ readonly id: number; readonly bytes: Uint8Array }> {
    const open = await this.#opened();
    open.bulk ??= openBulkChannel(open.launcher, open.hello.session, this.#services.version);
    const opening = open.bulk;
    try {
      const bulk = await opening;
      const answer = bulkAnswerSchema.parse(await this.#send(open.rpc, method, params, token));
      return { id: answer.bulk, bytes: await bulk.take(answer.bulk) };
    } catch (error) {
      // A channel that is gone is opened again by the next request; a refused request leaves it as it is.
      if (!(error instanceof ResponseError) && !isCancelled(error) && open.bulk === opening) open.bulk = null;
      throw error;
    }
  }

  /** Leaves the daemon and whatever was asked of it; the next request opens a new connection. */
  disconnect(): void {
    this.#forgetRetry?.();
    this.#forgetRetry = null;
    const open = this.#open;
    this.#open = null;
    this.#opening = null;
    if (open !== null) close(open);
    this.#become({ kind: "idle" });
  }

  dispose(): void {
    this.#disposed = true;
    this.disconnect();
    this.#stateListeners.clear();
    this.#listeners.clear();
  }

  async #send(
    rpc: MessageConnection,
    method: DaemonMethod,
    params: unknown,
    token: CancellationToken | undefined,
  ): Promise<unknown> {
    try {
      return await (token === undefined ? rpc.sendRequest(method, params) : rpc.sendRequest(method, params, token));
    } catch (error) {
      if (token?.isCancellationRequested === true) throw new CancelledError();
      if (error instanceof ResponseError) {
        if (error.code === ErrorCodes.PendingResponseRejected) throw lost("The connection to the daemon was closed.");
        throw error;
      }
      if (this.#open?.rpc !== rpc) throw lost("The connection to the daemon was closed.");
      throw error;
    }
  }

  #opened(): Promise<Open> {
    if (this.#disposed) return Promise.reject(lost("The window is being closed."));
    if (this.#open !== null) return Promise.resolve(this.#open);
    this.#opening ??= this.#tryToOpen();
    return this.#opening;
  }

  async #tryToOpen(): Promise<Open> {
    this.#forgetRetry?.();
    this.#forgetRetry = null;
    // What is missing stays on show while it is looked for again.
    if (this.#state.kind !== "failed") this.#become({ kind: "connecting" });
    try {
      const launcher = await this.#services.findLauncher();
      const open = await this.#sayHello(launcher);
      if (this.#disposed) {
        close(open);
        throw lost("The window is being closed.");
      }
      this.#open = open;
      this.#losses = 0;
      this.#lastFault = "";
      this.#services.log.info(`connected to daemon ${open.hello.version} (process ${open.hello.pid})`);
      this.#become({ kind: "connected", hello: open.hello });
      return open;
    } catch (error) {
      this.#opening = null;
      this.#fail(error);
      throw error;
    }
  }

  async #sayHello(launcher: Launcher): Promise<Open> {
    const child = launcher.start(["daemon", "stdio"]);
    const rpc = createMessageConnection(
      new StreamMessageReader(child.process.stdout),
      new StreamMessageWriter(child.process.stdin),
    );
    for (const name of Object.keys(daemonNotifications) as DaemonNotification[]) this.#pass(rpc, name);
    rpc.onError(([error]) => this.#services.log.warn(`wire: ${error.message}`));
    rpc.onClose(() => this.#lose(rpc));
    rpc.listen();
    let forget = () => {};
    const tooLate = new Promise<string>((resolve) => {
      forget = this.#services.later(helloMilliseconds, () => resolve(`no answer within ${helloMilliseconds / 1000} s`));
    });
    try {
      const answer = await Promise.race([
        rpc.sendRequest("hello", {
          protocol: protocolVersion,
          client: { name: "vscode", version: this.#services.version },
          channel: "rpc",
          session: null,
        }),
        Promise.race([child.ended, tooLate]).then((how) => {
          const said = child.lastWords();
          throw (
            spokenError(said) ??
            new RollscopeError("DAEMON_UNREACHABLE", `The daemon did not answer: ${how}. ${said}`.trim(), {
              next: "Run Rollscope: Show Daemon Log to see why, or Rollscope: Check Environment.",
            })
          );
        }),
      ]);
      const hello = daemonMethods.hello.result.parse(answer);
      if (hello.protocol !== protocolVersion) {
        refuse(
          "DAEMON_VERSION_MISMATCH",
          `The daemon ${hello.version} speaks protocol ${hello.protocol}; this extension speaks ${protocolVersion}.`,
          "Install payload and extension of one version, then stop the old daemon with `rollscope daemon stop`; runs go on.",
        );
      }
      void child.ended.then(() => this.#lose(rpc));
      return { rpc, child, hello, launcher, bulk: null };
    } catch (error) {
      const said = child.lastWords();
      if (said !== "") this.#services.log.error(`bridge: ${said}`);
      rpc.dispose();
      child.end();
      throw error;
    } finally {
      forget();
    }
  }

  #pass(rpc: MessageConnection, name: DaemonNotification): void {
    rpc.onNotification(name, (params: unknown) => {
      const parsed = daemonNotifications[name].safeParse(params);
      if (!parsed.success) {
        this.#services.log.error(`${name} from the daemon does not fit its schema: ${parsed.error.message}`);
        return;
      }
      for (const listener of this.#listeners.get(name) ?? []) listener(parsed.data as never);
    });
  }

  #lose(rpc: MessageConnection): void {
    const open = this.#open;
    if (open === null || open.rpc !== rpc) return;
    this.#open = null;
    this.#opening = null;
    close(open);
    const said = open.child.lastWords();
    this.#services.log.warn(`lost the daemon${said === "" ? "" : `: ${said}`}`);
    this.#fail(lost("The connection to the daemon was lost."));
  }

  #fail(error: unknown): void {
    if (this.#disposed) return;
    const fault = asFault(error);
    if (this.#lastFault !== fault.message) this.#services.log.error(`${fault.code} ${fault.message}`);
    this.#lastFault = fault.message;
    if (!fault.retryable) {
      // What is installed meanwhile is found without being asked for.
      this.#forgetRetry = this.#services.later(lookAgainMilliseconds, () => void this.#opened().catch(() => {}));
      this.#become({ kind: "failed", fault });
      return;
    }
    const pause = pauses[Math.min(this.#losses, pauses.length - 1)]!;
    this.#losses++;
    this.#forgetRetry = this.#services.later(pause, () => void this.#opened().catch(() => {}));
    this.#become({ kind: "waiting", fault, retryInMilliseconds: pause });
  }

  #become(state: ConnectionState): void {
    this.#state = state;
    for (const listener of this.#stateListeners) listener(state);
  }
}

function close(open: Open): void {
  void open.bulk?.then((bulk) => bulk.dispose()).catch(() => {});
  open.rpc.dispose();
  open.child.end();
}

/** The error that the command line wrote before it ended; null when it wrote none with a code. */
export function spokenError(text: string): RollscopeError | null {
  const match = /error: (.*) \[([A-Z][A-Z_]+)\](?:\r?\n(.*))?/.exec(text);
  if (match === null || !Object.hasOwn(errorCodes, match[2]!)) return null;
  return new RollscopeError(match[2] as ErrorCode, match[1]!, { next: match[3] ?? "" });
}

function lost(sentence: string): RollscopeError {
  return new RollscopeError("DAEMON_UNREACHABLE", sentence, {
    next: "Runs go on without it. Try again; Rollscope: Show Daemon Log says why when it does not come back.",
  });
}
