// One client as methods see it: typed notifications, bulk frames by id, and its end. Frames wait for the bulk channel in a bounded
// queue; a client that lets it fill is refused more, and nobody else waits for it.
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { encodeBulkFrame } from "../../../../protocol/bulkFrame.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { MethodSession } from "../methods/methodTypes.ts";

/** Frames of a client whose bulk channel is not there yet, and bytes that its channel has not taken. */
const mostWaitingFrames = 32;
const mostWaitingBytes = 64 * 1024 * 1024;

export interface ClientSession extends MethodSession {
  readonly ended: boolean;
  /** Sends frames there from now on, those that waited first. */
  attachBulk(send: (frame: Uint8Array) => void, waitingBytes: () => number): void;
  detachBulk(): void;
  dispose(): void;
}

/** @param tell sends a notification and resolves when it has left */
export function createClientSession(tell: (name: string, params: unknown) => Promise<void>): ClientSession {
  const endings = new Set<() => void>();
  let waiting: Uint8Array[] = [];
  let channel: { send: (frame: Uint8Array) => void; waitingBytes: () => number } | null = null;
  let lastFrame = 0;
  let ended = false;
  return {
    id: randomBytes(16).toString("hex"),
    get ended() {
      return ended;
    },
    async notify(name, params) {
      if (ended) return;
      try {
        await tell(name, params);
      } catch {
        // The connection is going away; its end is told to whoever asked for it.
      }
    },
    bulk({ arrays, extra }) {
      const full = channel === null ? waiting.length >= mostWaitingFrames : channel.waitingBytes() > mostWaitingBytes;
      if (full) {
        throw new RollscopeError("DAEMON_BUSY", "The client asked for more frames than its bulk channel took.", {
          next: "Open the bulk channel and read from it, then ask again.",
        });
      }
      lastFrame += 1;
      const frame = encodeBulkFrame({ id: lastFrame, arrays, extra });
      if (channel === null) waiting.push(frame);
      else channel.send(frame);
      return { bulk: lastFrame };
    },
    onEnd(run) {
      if (ended) {
        run();
        return () => {};
      }
      endings.add(run);
      return () => endings.delete(run);
    },
    attachBulk(send, waitingBytes) {
      channel = { send, waitingBytes };
      for (const frame of waiting.splice(0)) send(frame);
    },
    detachBulk() {
      channel = null;
    },
    dispose() {
      if (ended) return;
      ended = true;
      channel = null;
      waiting = [];
      for (const run of [...endings]) run();
      endings.clear();
    },
  };
}

/** Writes frames to a socket, each after its length (u32, little-endian). */
export function frameSender(socket: Socket): (frame: Uint8Array) => void {
  return (frame) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(frame.byteLength);
    socket.cork();
    socket.write(length);
    socket.write(frame);
    socket.uncork();
  };
}
