// Between a page (dashboard, inspector) and what hosts it: the editor's extension, or the daemon's web server for a plain browser.
// A page talks to the daemon through its host, with the methods of daemonMethods.ts, and asks the host itself for a few things.
// Hosts pass requests, results and notifications of the daemon on as they came, unparsed: numbers that JSON lacks are words there,
// and the page parses. A page in a browser opens the WebSocket that its document names (pageDocument.ts).
import { z } from "zod";
import { advisoryLinkSchema } from "./advisory.ts";
import { trajectorySourceSchema } from "./trajectoryView.ts";

/** What the page shows; kept by the host, so that a reloaded page comes back as it was. */
export const pageStateSchema = z.discriminatedUnion("page", [
  z.object({
    page: z.literal("dashboard"),
    /** Overlaid runs; the first one is the main one. */
    folders: z.array(z.string()),
    view: z.record(z.string(), z.unknown()),
  }),
  z.object({ page: z.literal("inspector"), source: trajectorySourceSchema, view: z.record(z.string(), z.unknown()) }),
]);
export type PageState = z.infer<typeof pageStateSchema>;

/** What a page asks of its host besides the daemon's methods. */
export const hostMethods = {
  /** First message of a page. */
  "host/ready": {
    params: z.object({}),
    result: z.object({ state: pageStateSchema, locale: z.string(), host: z.enum(["editor", "browser"]) }),
  },
  "host/keepState": { params: z.object({ state: pageStateSchema }), result: z.object({}) },
  "host/openTrajectory": {
    params: z.object({ source: trajectorySourceSchema, beside: z.boolean() }),
    result: z.object({}),
  },
  "host/openStep": { params: z.object({ folder: z.string(), step: z.int().min(0) }), result: z.object({}) },
  "host/openDashboard": { params: z.object({ folder: z.string() }), result: z.object({}) },
  "host/follow": { params: z.object({ folder: z.string(), link: advisoryLinkSchema }), result: z.object({}) },
  "host/copy": { params: z.object({ text: z.string() }), result: z.object({}) },
  "host/saveText": { params: z.object({ name: z.string(), text: z.string() }), result: z.object({}) },
  /** null: dismissed. A host without a list to choose from refuses with PAGE_HOST_UNSUPPORTED, and the page shows its own. */
  "host/pickRuns": {
    params: z.object({ chosen: z.array(z.string()) }),
    result: z.object({ folders: z.array(z.string()).nullable() }),
  },
} as const;
export type HostMethod = keyof typeof hostMethods;

/** What the host says by itself. */
export const hostNotifications = {
  /** The connection to the daemon went away or came back; pages keep what they show and follow again from their cursors. */
  "host/connection": z.object({ connected: z.boolean(), message: z.string() }),
  /** Show another thing in the same page (another step, another trajectory of a preview). */
  "host/show": z.object({ state: pageStateSchema }),
  /** Of a browser only, after a host/open…: go to this address of the same origin, or open it beside. */
  "host/navigate": z.object({ url: z.string(), beside: z.boolean() }),
} as const;

/**
 * Messages in either direction, posted (webview) or as text frames (WebSocket). Bulk frames follow as a message of `bulk` with the
 * bytes (webview) or as a binary frame.
 */
export const pageMessageSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("request"), id: z.int().min(0), method: z.string(), params: z.unknown() }),
  z.object({ kind: z.literal("cancel"), id: z.int().min(0) }),
  z.object({ kind: z.literal("result"), id: z.int().min(0), result: z.unknown() }),
  z.object({
    kind: z.literal("error"),
    id: z.int().min(0),
    error: z.object({ code: z.string(), message: z.string(), next: z.string(), retryable: z.boolean() }),
  }),
  z.object({ kind: z.literal("notification"), method: z.string(), params: z.unknown() }),
  z.object({ kind: z.literal("bulk"), bytes: z.custom<ArrayBuffer>((value) => value instanceof ArrayBuffer) }),
]);
export type PageMessage = z.infer<typeof pageMessageSchema>;

/** Daemon methods that a page may call; a host refuses the others. */
export const pageMethods = [
  "run/follow",
  "run/unfollow",
  "run/stop",
  "run/pause",
  "run/continue",
  "run/resume",
  "run/log",
  "run/config",
  "run/waterfall",
  "run/explainZeroLoss",
  "metrics/series",
  "metrics/rows",
  "runs/watch",
  "runs/unwatch",
  "trajectories/list",
  "trajectories/ofStep",
  "trajectory/open",
  "trajectory/close",
  "trajectory/turns",
  "trajectory/part",
  "trajectory/raw",
  "trajectory/tokens",
  "trajectory/extreme",
  "trajectory/search",
  "trajectory/siblings",
  "trajectory/diff",
  "trajectory/image",
  "file/open",
] as const;
