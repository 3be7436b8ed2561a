// One page in a browser: its requests go to the daemon's methods (those that a page may call) or are answered by this host, which
// can do little more than send it to another address. Its WebSocket is its session and its bulk channel at once.
import type { WebSocket } from "ws";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { specialsAsWords } from "../../../../protocol/journal.ts";
import {
  type HostMethod,
  hostMethods,
  type PageMessage,
  type PageState,
  pageMessageSchema,
  pageMethods,
} from "../../../../protocol/pageHost.ts";
import type { DaemonLog } from "../daemonLog.ts";
import type { CallMethod } from "../methods/methodTypes.ts";
import { createClientSession } from "../server/clientSession.ts";
import { createTurnstile, turnstileLimits } from "../server/turnstile.ts";
import { responseError } from "../server/wire.ts";
import { pagePath } from "./pageAddress.ts";

export interface PageServices {
  readonly call: CallMethod;
  readonly log: DaemonLog;
  /** What the page showed last under this address. */
  readonly states: Map<string, PageState>;
}

const allowed: ReadonlySet<string> = new Set(pageMethods);
const keptStates = 200;

export function servePage(socket: WebSocket, opened: PageState, locale: string, services: PageServices): void {
  const { call, log, states } = services;
  const key = JSON.stringify(opened);
  const running = new Map<number, AbortController>();
  const turnstile = createTurnstile(turnstileLimits, (isCrowded) => (isCrowded ? socket.pause() : socket.resume()));
  const post = (message: PageMessage): Promise<void> =>
    new Promise((resolve) => {
      if (socket.readyState !== socket.OPEN) resolve();
      else socket.send(JSON.stringify(message, specialsAsWords), () => resolve());
    });
  const session = createClientSession((method, params) => post({ kind: "notification", method, params }));
  session.attachBulk(
    (frame) => socket.send(frame, { binary: true }),
    () => socket.bufferedAmount,
  );

  const navigate = (state: PageState, beside: boolean) => {
    void post({ kind: "notification", method: "host/navigate", params: { url: pagePath(state), beside } });
    return {};
  };
  const dashboard = (folder: string, view: Record<string, unknown> = {}): PageState => ({
    page: "dashboard",
    folders: [folder],
    view,
  });

  const answerHost = (method: HostMethod, params: unknown): unknown => {
    switch (method) {
      case "host/ready":
        return { state: states.get(key) ?? opened, locale, host: "browser" };
      case "host/keepState": {
        const { state } = hostMethods[method].params.parse(params);
        states.delete(key);
        states.set(key, state);
        const oldest = states.keys().next();
        if (states.size > keptStates && oldest.done !== true) states.delete(oldest.value);
        return {};
      }
      case "host/openTrajectory": {
        const { source, beside } = hostMethods[method].params.parse(params);
        return navigate({ page: "inspector", source, view: { sampled: true } }, beside);
      }
      case "host/openStep": {
        const { folder, step } = hostMethods[method].params.parse(params);
        return navigate(dashboard(folder, { step }), false);
      }
      case "host/openDashboard":
        return navigate(dashboard(hostMethods[method].params.parse(params).folder), false);
      case "host/follow": {
        const { folder, link } = hostMethods[method].params.parse(params);
        if (link.kind === "record")
          return navigate(
            { page: "inspector", source: { kind: "record", folder, record: link.record }, view: { sampled: true } },
            true,
          );
        if (link.kind === "step") return navigate(dashboard(folder, { step: link.step }), false);
        if (link.kind === "metric") return navigate(dashboard(folder, { metric: link.metric }), false);
        throw unsupported("opens no recipe");
      }
      case "host/pickRuns":
        throw unsupported("chooses runs by itself");
      case "host/copy":
      case "host/saveText":
        throw unsupported("copies and saves by itself");
      default:
        throw invalid(`There is no ${String(method)}.`);
    }
  };

  const answer = async (id: number, method: string, params: unknown): Promise<void> => {
    const stop = new AbortController();
    running.set(id, stop);
    await turnstile.enter();
    try {
      const result = method.startsWith("host/")
        ? answerHost(method as HostMethod, parseHost(method, params))
        : await callDaemon(method, params, stop.signal);
      await post({ kind: "result", id, result });
    } catch (error) {
      if (!(error instanceof RollscopeError)) log.error(`${method} of a page failed`, error);
      const { data } = responseError(error);
      const { code, message, next, retryable } = data as PageMessage & { code: string; message: string } & {
        next: string;
        retryable: boolean;
      };
      await post({ kind: "error", id, error: { code, message, next, retryable } });
    } finally {
      running.delete(id);
      turnstile.leave();
    }
  };

  const callDaemon = async (method: string, params: unknown, signal: AbortSignal): Promise<unknown> => {
    if (!allowed.has(method)) throw invalid(`A page may not call ${method}.`);
    return await call(method, params, { session, signal });
  };

  socket.on("message", (data, isBinary) => {
    const message = isBinary ? null : parseMessage(data.toString());
    if (message === null) socket.close(1003, "not a message");
    else if (message.kind === "request") void answer(message.id, message.method, message.params);
    else if (message.kind === "cancel") running.get(message.id)?.abort();
  });
  socket.on("error", () => socket.terminate());
  socket.on("close", () => {
    for (const stop of running.values()) stop.abort();
    session.dispose();
  });
}

function parseMessage(text: string): PageMessage | null {
  try {
    return pageMessageSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

function parseHost(method: string, params: unknown): unknown {
  if (!Object.hasOwn(hostMethods, method)) throw invalid(`There is no ${method}.`);
  const parsed = hostMethods[method as HostMethod].params.safeParse(params);
  if (!parsed.success) throw invalid(`${method} was asked wrongly: ${parsed.error.issues[0]?.message ?? ""}.`);
  return parsed.data;
}

function invalid(sentence: string): RollscopeError {
  return new RollscopeError("DAEMON_REQUEST_INVALID", sentence, { next: "This is a fault of the page; report it." });
}

function unsupported(what: string): RollscopeError {
  return new RollscopeError("PAGE_HOST_UNSUPPORTED", `A page in a browser ${what}.`, {
    next: "Use the editor's view for that.",
  });
}
