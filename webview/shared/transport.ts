// How messages leave the page: posted to the editor, or over a WebSocket to the daemon's page server. It knows nothing of what
// they mean, and keeps the one handle that a webview may acquire.
import { type PageMessage, pageMessageSchema } from "../../protocol/pageHost.ts";
import { answerInBrowser, navigateInBrowser } from "./browserHost.ts";

export type TransportState =
  | { readonly state: "connecting" }
  | { readonly state: "open" }
  /** The page tries again by itself. */
  | { readonly state: "lost"; readonly message: string };

export interface Transport {
  post(message: PageMessage): void;
  onMessage(listener: (message: PageMessage) => void): void;
  /** Called once for every connection: a new one knows nothing of the one before. */
  onState(listener: (state: TransportState) => void): void;
  readState(): unknown;
  writeState(state: unknown): void;
  dispose(): void;
}

interface VsCodeApi {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}
declare global {
  interface Window {
    acquireVsCodeApi?: () => VsCodeApi;
  }
}

/** The editor's if it is there, else the WebSocket that the document names. Call it once. */
export function openTransport(): Transport {
  if (window.acquireVsCodeApi !== undefined) return editorTransport(window.acquireVsCodeApi());
  const address = document.querySelector<HTMLMetaElement>('meta[name="rollscope-socket"]')?.content ?? "socket";
  const url = new URL(address, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return socketTransport(url.href);
}

function editorTransport(api: VsCodeApi): Transport {
  let deliver: (message: PageMessage) => void = () => {};
  const receive = (event: MessageEvent<unknown>) => {
    const parsed = pageMessageSchema.safeParse(event.data);
    if (parsed.success) deliver(parsed.data);
  };
  window.addEventListener("message", receive);
  return {
    post: (message) => api.postMessage(message),
    onMessage: (listener) => {
      deliver = listener;
    },
    onState: (listener) => queueMicrotask(() => listener({ state: "open" })),
    readState: () => api.getState() ?? null,
    writeState: (state) => api.setState(state),
    dispose: () => window.removeEventListener("message", receive),
  };
}

const firstDelay = 250;
const longestDelay = 5000;

function socketTransport(url: string): Transport {
  let deliver: (message: PageMessage) => void = () => {};
  let tell: (state: TransportState) => void = () => {};
  let socket: WebSocket | null = null;
  let delay = firstDelay;
  let timer: number | undefined;
  let disposed = false;
  const stateKey = `rollscope:${location.pathname}${location.search}`;

  const connect = () => {
    const opened = new WebSocket(url);
    opened.binaryType = "arraybuffer";
    socket = opened;
    opened.addEventListener("open", () => {
      delay = firstDelay;
      tell({ state: "open" });
    });
    opened.addEventListener("message", (event: MessageEvent<unknown>) => {
      if (event.data instanceof ArrayBuffer) return deliver({ kind: "bulk", bytes: event.data });
      if (typeof event.data !== "string") return;
      const parsed = pageMessageSchema.safeParse(JSON.parse(event.data));
      if (parsed.success && !navigateInBrowser(parsed.data)) deliver(parsed.data);
    });
    opened.addEventListener("close", (event) => {
      if (disposed) return;
      socket = null;
      tell({ state: "lost", message: event.reason });
      timer = window.setTimeout(connect, delay);
      delay = Math.min(delay * 2, longestDelay);
    });
  };

  return {
    post: (message) => {
      const answer = answerInBrowser(message);
      if (answer !== null) void answer.then((answered) => deliver(answered));
      else if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
    },
    onMessage: (listener) => {
      deliver = listener;
    },
    onState: (listener) => {
      tell = listener;
      tell({ state: "connecting" });
      connect();
    },
    readState: () => {
      const text = sessionStorage.getItem(stateKey);
      return text === null ? null : (JSON.parse(text) as unknown);
    },
    writeState: (state) => sessionStorage.setItem(stateKey, JSON.stringify(state)),
    dispose: () => {
      disposed = true;
      window.clearTimeout(timer);
      socket?.close();
    },
  };
}
