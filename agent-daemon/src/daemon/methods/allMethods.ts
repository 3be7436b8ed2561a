// All modules of methods, and the one table made of them. To add methods: write a module beside this file (see methodTypes.ts) and
// list it here. A method that no module brings answers DAEMON_METHOD_UNAVAILABLE.
import { type DaemonMethod, daemonMethods } from "../../../../protocol/daemonMethods.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { interchangeMethods } from "./interchangeMethods.ts";
import { machineMethods } from "./machineMethods.ts";
import type { CreateMethods, DaemonServices, MethodCall } from "./methodTypes.ts";
import { metricMethods } from "./metricMethods.ts";
import { pageServerMethods } from "./pageMethods.ts";
import { recipeMethods } from "./recipeMethods.ts";
import { runMethods } from "./runMethods.ts";
import { trajectoryMethods } from "./trajectoryMethods.ts";

const modules: readonly CreateMethods[] = [
  runMethods,
  metricMethods,
  machineMethods,
  pageServerMethods,
  trajectoryMethods,
  recipeMethods,
  interchangeMethods,
];

/** Answered by the server itself. */
export const serverMethods = ["hello", "shutdown"] as const satisfies readonly DaemonMethod[];

export interface MethodTable {
  /** Names that some module brings. */
  readonly available: ReadonlySet<DaemonMethod>;
  /**
   * Parses the parameters, calls the method, returns its result.
   *
   * @throws DAEMON_METHOD_UNKNOWN, DAEMON_METHOD_UNAVAILABLE, DAEMON_REQUEST_INVALID, and what the method throws
   */
  call(method: string, params: unknown, call: MethodCall): Promise<unknown>;
  dispose(): Promise<void>;
}

type AnyHandler = (request: unknown, call: MethodCall) => Promise<unknown>;

export function createMethodTable(services: DaemonServices, created: readonly CreateMethods[] = modules): MethodTable {
  const opened = created.map((create) => create(services));
  const handlers = new Map<string, AnyHandler>();
  for (const { handlers: own } of opened) {
    for (const [method, handler] of Object.entries(own)) {
      if (handlers.has(method)) throw new Error(`two modules bring ${method}`);
      handlers.set(method, handler as AnyHandler);
    }
  }
  return {
    available: new Set(handlers.keys() as Iterable<DaemonMethod>),
    async call(method, params, call) {
      if (!Object.hasOwn(daemonMethods, method)) {
        throw new RollscopeError("DAEMON_METHOD_UNKNOWN", `The daemon has no method ${method}.`, {
          next: "Install client and daemon of one version, then run `rollscope daemon stop`; runs go on.",
          at: { method },
        });
      }
      const known = method as DaemonMethod;
      const handler = handlers.get(method);
      if (handler === undefined) {
        throw new RollscopeError("DAEMON_METHOD_UNAVAILABLE", `${method} is not available in this build.`, {
          next: "Install a newer version of Rollscope.",
          at: { method },
        });
      }
      return await handler(parseParams(known, params), call);
    },
    async dispose() {
      for (const module of opened) await module.dispose?.();
    },
  };
}

/** @throws DAEMON_REQUEST_INVALID naming the first key that does not fit */
export function parseParams(method: DaemonMethod, params: unknown): unknown {
  const parsed = daemonMethods[method].params.safeParse(params ?? {});
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue === undefined || issue.path.length === 0 ? "" : ` at ${issue.path.join(".")}`;
  throw new RollscopeError("DAEMON_REQUEST_INVALID", `${method} was asked wrongly${where}: ${issue?.message ?? ""}.`, {
    next: "This is a fault of the client; report it with its version.",
    at: { method },
  });
}
