// Typed calls from a page to the daemon and to its host, with cancelling, bulk frames by id, and a clean end when the connection
// goes away. Everything that arrives is parsed here; views get trusted values.
import { type ReadonlySignal, signal } from "@preact/signals";
import { z } from "zod";
import { type BulkFrame, decodeBulkFrame } from "../../protocol/bulkFrame.ts";
import {
  type DaemonNotification,
  type DaemonParams,
  type DaemonResult,
  daemonMethods,
  daemonNotifications,
  type NotificationOf,
} from "../../protocol/daemonMethods.ts";
import {
  type HostMethod,
  hostMethods,
  hostNotifications,
  type PageMessage,
  type pageMethods,
} from "../../protocol/pageHost.ts";
import type { Transport } from "./transport.ts";

// The page's policy forbids making code from text, which zod would otherwise try.
z.config({ jitless: true });

export type PageMethod = (typeof pageMethods)[number] | HostMethod;
type ParamsOf<M extends PageMethod> = M extends HostMethod
  ? z.input<(typeof hostMethods)[M]["params"]>
  : M extends keyof typeof daemonMethods
    ? DaemonParams<M>
    : never;
export type ResultOf<M extends PageMethod> = M extends HostMethod
  ? z.output<(typeof hostMethods)[M]["result"]>
  : M extends keyof typeof daemonMethods
    ? DaemonResult<M>
    : never;
type BulkMethod = "metrics/series" | "trajectory/tokens" | "trajectory/image";

type HostNotification = keyof typeof hostNotifications;
export type PageNotification = DaemonNotification | HostNotification;
export type Told<N extends PageNotification> = N extends HostNotification
  ? z.output<(typeof hostNotifications)[N]>
  : N extends DaemonNotification
    ? NotificationOf<N>
    : never;

/** What the other side refused, or what became of a call whose connection ended (`CONNECTION_LOST`, worth trying again). */
export class PageError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly next: string,
    readonly retryable: boolean,
  ) {
    super(message);
    this.name = "PageError";
  }
}

export type Connection =
  | { readonly state: "connecting" }
  | { readonly state: "connected" }
  | { readonly state: "lost"; readonly message: string };

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface PageClient {
  readonly connection: ReadonlySignal<Connection>;
  /** Counts connections. Whoever follows something follows again, from its cursor, when it changes. */
  readonly epoch: ReadonlySignal<number>;
  call<M extends PageMethod>(method: M, params: ParamsOf<M>, options?: CallOptions): Promise<ResultOf<M>>;
  /** A call whose answer names a bulk frame: resolves to the frame. */
  callBulk<M extends BulkMethod>(method: M, params: ParamsOf<M>, options?: CallOptions): Promise<BulkFrame>;
  /** @returns ends it */
  on<N extends PageNotification>(notification: N, listener: (value: Told<N>) => void): () => void;
  dispose(): void;
}

interface Pending {
  readonly method: PageMethod;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Frames may come before the answer that names them; more than these wait for nobody. */
const mostUnclaimedFrames = 64;

export function connectPage(transport: Transport): PageClient {
  const connection = signal<Connection>({ state: "connecting" });
  const epoch = signal(0);
  const pending = new Map<number, Pending>();
  const frames = new Map<number, BulkFrame>();
  const frameWaiters = new Map<number, { resolve(frame: BulkFrame): void; reject(error: unknown): void }>();
  /** Frames of calls that were cancelled meanwhile. */
  const unwanted = new Set<number>();
  const listeners = new Map<string, Set<(value: unknown) => void>>();
  let lastId = 0;

  const lost = () =>
    new PageError(
      "CONNECTION_LOST",
      "The connection to the daemon was lost.",
      "It comes back by itself; try again then.",
      true,
    );

  const dropDaemonCalls = (hostToo: boolean) => {
    for (const [id, call] of pending) {
      if (!hostToo && call.method.startsWith("host/")) continue;
      pending.delete(id);
      call.reject(lost());
    }
    for (const waiter of frameWaiters.values()) waiter.reject(lost());
    frameWaiters.clear();
    frames.clear();
    unwanted.clear();
  };

  const takeFrame = (frame: BulkFrame) => {
    if (unwanted.delete(frame.id)) return;
    const waiter = frameWaiters.get(frame.id);
    if (waiter !== undefined) {
      frameWaiters.delete(frame.id);
      return waiter.resolve(frame);
    }
    frames.set(frame.id, frame);
    if (frames.size > mostUnclaimedFrames) frames.delete(frames.keys().next().value!);
  };

  const takeNotification = (method: string, params: unknown) => {
    const schema =
      hostNotifications[method as HostNotification] ?? daemonNotifications[method as DaemonNotification] ?? null;
    if (schema === null) return;
    const parsed = schema.safeParse(params);
    if (!parsed.success) {
      console.error(`A notification ${method} could not be read.`, parsed.error);
      return;
    }
    if (method === "host/connection") {
      const { connected, message } = parsed.data as Told<"host/connection">;
      if (!connected) {
        connection.value = { state: "lost", message };
        dropDaemonCalls(false);
      } else if (connection.peek().state !== "connected") {
        connection.value = { state: "connected" };
        epoch.value += 1;
      }
    }
    for (const listener of listeners.get(method) ?? []) listener(parsed.data);
  };

  const takeResult = (id: number, result: unknown) => {
    const call = pending.get(id);
    pending.delete(id);
    if (call === undefined) {
      const named = (result as { bulk?: unknown } | null)?.bulk;
      if (typeof named === "number" && !frames.delete(named)) unwanted.add(named);
      return;
    }
    const methods: Readonly<Record<string, { readonly result: z.ZodType }>> = { ...daemonMethods, ...hostMethods };
    const parsed = methods[call.method]!.result.safeParse(result);
    if (parsed.success) return call.resolve(parsed.data);
    console.error(`The answer to ${call.method} could not be read.`, parsed.error);
    call.reject(
      new PageError(
        "PROTOCOL_MISMATCH",
        `The answer to ${call.method} could not be read.`,
        "Reload the window; if it stays, the extension and the daemon are of different versions.",
        false,
      ),
    );
  };

  transport.onMessage((message: PageMessage) => {
    switch (message.kind) {
      case "bulk":
        return takeFrame(decodeBulkFrame(new Uint8Array(message.bytes)));
      case "notification":
        return takeNotification(message.method, message.params);
      case "result":
        return takeResult(message.id, message.result);
      case "error": {
        const call = pending.get(message.id);
        pending.delete(message.id);
        const { code, message: text, next, retryable } = message.error;
        return call?.reject(new PageError(code, text, next, retryable));
      }
      default:
        return;
    }
  });
  transport.onState((state) => {
    if (state.state === "open") {
      connection.value = { state: "connected" };
      epoch.value += 1;
    } else {
      connection.value = state.state === "lost" ? state : { state: "connecting" };
      dropDaemonCalls(true);
    }
  });

  const call: PageClient["call"] = (method, params, options) =>
    new Promise((resolve, reject) => {
      const abort = options?.signal;
      if (abort?.aborted === true) return reject(abort.reason);
      const { state } = connection.peek();
      if (state === "lost" || (state === "connecting" && method !== "host/ready")) return reject(lost());
      const id = ++lastId;
      const cancel = () => {
        if (!pending.delete(id)) return;
        transport.post({ kind: "cancel", id });
        reject(abort!.reason);
      };
      abort?.addEventListener("abort", cancel, { once: true });
      pending.set(id, {
        method,
        resolve: (value) => {
          abort?.removeEventListener("abort", cancel);
          resolve(value as never);
        },
        reject: (error) => {
          abort?.removeEventListener("abort", cancel);
          reject(error);
        },
      });
      transport.post({ kind: "request", id, method, params });
    });

  return {
    connection,
    epoch,
    call,
    callBulk: async (method, params, options) => {
      const { bulk } = (await call(method, params, options)) as { bulk: number };
      const early = frames.get(bulk);
      if (early !== undefined) {
        frames.delete(bulk);
        return early;
      }
      return await new Promise<BulkFrame>((resolve, reject) => {
        const abort = options?.signal;
        const cancel = () => {
          if (frameWaiters.delete(bulk)) unwanted.add(bulk);
          reject(abort!.reason);
        };
        if (abort?.aborted === true) return cancel();
        abort?.addEventListener("abort", cancel, { once: true });
        frameWaiters.set(bulk, {
          resolve: (frame) => {
            abort?.removeEventListener("abort", cancel);
            resolve(frame);
          },
          reject,
        });
      });
    },
    on: (notification, listener) => {
      const set = listeners.get(notification) ?? new Set();
      listeners.set(notification, set);
      set.add(listener as (value: unknown) => void);
      return () => set.delete(listener as (value: unknown) => void);
    },
    dispose: () => {
      dropDaemonCalls(true);
      transport.dispose();
    },
  };
}
