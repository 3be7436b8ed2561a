// Between one page and the daemon: answers the page's requests, the daemon's methods through the connection and host/* through the
// editor, and posts what was followed. Refuses every other method. Knows nothing of panels.
import type { CancellationToken } from "vscode-jsonrpc/node";
import { CancellationTokenSource } from "vscode-jsonrpc/node";
import { type DaemonMethod, daemonMethods } from "../../protocol/daemonMethods.ts";
import {
  type HostMethod,
  hostMethods,
  type PageMessage,
  pageMessageSchema,
  pageMethods,
} from "../../protocol/pageHost.ts";
import type { RunDelta } from "../../protocol/runView.ts";
import type { DaemonConnection, Log } from "../daemon/connection.ts";
import { asFault, refuse } from "../daemon/fault.ts";
import type { Page, RunFollowers } from "./runFollowers.ts";

/** Parsed parameters in, result out; what it returns is checked by the page. */
export type AnswerHost = (method: HostMethod, params: unknown) => Promise<unknown>;

export interface PageRelay {
  readonly onMessage: (message: unknown) => void;
  /** The page went away and may come back as a new one, which knows nothing of what was asked. */
  readonly reset: () => void;
  /** Something that the host says by itself. */
  readonly notify: (method: string, params: unknown) => void;
  readonly dispose: () => void;
}

export interface RelayServices {
  readonly connection: DaemonConnection;
  readonly followers: RunFollowers;
  readonly answerHost: AnswerHost;
  readonly post: (message: PageMessage) => void;
  readonly log: Log;
  /** Whether code of the folder may run: resuming a run does that. */
  readonly mayRun: () => boolean;
}

const allowed: ReadonlySet<string> = new Set(pageMethods);
/** Methods whose answer names a bulk frame. */
const bulkMethods: ReadonlySet<string> = new Set(["metrics/series", "trajectory/tokens", "trajectory/image"]);

export function createPageRelay(services: RelayServices): PageRelay {
  const { connection, followers, post } = services;
  const running = new Map<number, CancellationTokenSource>();
  let disposed = false;
  const say = (message: PageMessage) => {
    if (!disposed) post(message);
  };
  const page: Page = {
    deliver: (delta: RunDelta) => say({ kind: "notification", method: "run/delta", params: wordsForSpecials(delta) }),
  };
  const offs = [
    connection.on("runs/changed", (params) =>
      say({ kind: "notification", method: "runs/changed", params: wordsForSpecials(params) }),
    ),
    connection.on("trajectory/changed", (params) =>
      say({ kind: "notification", method: "trajectory/changed", params: wordsForSpecials(params) }),
    ),
    connection.onState((state) => {
      if (state.kind === "connecting") return;
      const message = state.kind === "waiting" || state.kind === "failed" ? state.fault.message : "";
      say({
        kind: "notification",
        method: "host/connection",
        params: { connected: state.kind === "connected", message },
      });
    }),
  ];

  const answerDaemon = async (method: string, params: unknown, token: CancellationToken) => {
    if (!allowed.has(method)) {
      refuse("DAEMON_REQUEST_INVALID", `A page may not call ${method}.`, "This is a fault of Rollscope: report it.");
    }
    const known = method as DaemonMethod;
    const parsed = daemonMethods[known].params.safeParse(params);
    if (!parsed.success) {
      refuse(
        "DAEMON_REQUEST_INVALID",
        `A page called ${method} with parameters that do not fit: ${parsed.error.issues[0]?.message ?? "unknown"}.`,
        "This is a fault of Rollscope: report it.",
      );
    }
    if (known === "run/resume" && !services.mayRun()) {
      refuse(
        "WORKSPACE_UNTRUSTED",
        "This folder is not trusted, so its runs can be looked at but not started.",
        "Trust the folder with Workspaces: Manage Workspace Trust.",
      );
    }
    if (known === "run/follow") {
      const { folder, cursor } = daemonMethods["run/follow"].params.parse(params);
      await followers.follow(page, folder, cursor);
      return {};
    }
    if (known === "run/unfollow") {
      await followers.unfollow(page, daemonMethods["run/unfollow"].params.parse(params).folder);
      return {};
    }
    if (bulkMethods.has(known)) {
      const frame = await connection.requestBulk(known, parsed.data, token);
      // After the result, so that the page knows the id when the bytes come.
      queueMicrotask(() => say({ kind: "bulk", bytes: wholeBuffer(frame.bytes) }));
      return { bulk: frame.id };
    }
    return await connection.relay(known, parsed.data, token);
  };

  const reset = () => {
    for (const source of running.values()) source.cancel();
    running.clear();
    followers.leave(page);
  };

  const answer = async (id: number, method: string, params: unknown) => {
    if (method === "host/ready") reset();
    const source = new CancellationTokenSource();
    running.set(id, source);
    try {
      const result = method.startsWith("host/")
        ? await services.answerHost(...parseHost(method, params))
        : await answerDaemon(method, params, source.token);
      say({ kind: "result", id, result });
    } catch (error) {
      const { code, message, next, retryable } = asFault(error);
      say({ kind: "error", id, error: { code, message, next, retryable } });
    } finally {
      if (running.get(id) === source) running.delete(id);
      source.dispose();
    }
  };

  return {
    onMessage: (message) => {
      const parsed = pageMessageSchema.safeParse(message);
      if (!parsed.success) {
        services.log.warn(`a page posted something that is no message: ${parsed.error.issues[0]?.message ?? ""}`);
        return;
      }
      if (parsed.data.kind === "request") void answer(parsed.data.id, parsed.data.method, parsed.data.params);
      else if (parsed.data.kind === "cancel") running.get(parsed.data.id)?.cancel();
    },
    notify: (method, params) => say({ kind: "notification", method, params }),
    reset,
    dispose: () => {
      disposed = true;
      for (const off of offs) off();
      reset();
    },
  };
}

function parseHost(method: string, params: unknown): [HostMethod, unknown] {
  const known = hostMethods[method as HostMethod];
  if (known === undefined) {
    refuse("DAEMON_REQUEST_INVALID", `There is no ${method}.`, "This is a fault of Rollscope: report it.");
  }
  const parsed = known.params.safeParse(params);
  if (!parsed.success) {
    refuse(
      "DAEMON_REQUEST_INVALID",
      `A page called ${method} with parameters that do not fit: ${parsed.error.issues[0]?.message ?? "unknown"}.`,
      "This is a fault of Rollscope: report it.",
    );
  }
  return [method as HostMethod, parsed.data];
}

/** Posting copies the whole buffer under a view, so the view must be all of it. */
function wholeBuffer(bytes: Uint8Array): ArrayBuffer {
  if (bytes.byteOffset === 0 && bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer) {
    return bytes.buffer;
  }
  return bytes.slice().buffer;
}

/** The editor posts as JSON, which has no NaN and no infinities: they travel as the words that the contract reads. */
export function wordsForSpecials(value: unknown): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (Array.isArray(value)) return value.map(wordsForSpecials);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inside]) => [key, wordsForSpecials(inside)]));
}
