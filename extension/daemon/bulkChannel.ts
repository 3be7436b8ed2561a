// The second connection, which brings bulk frames, to be taken by id. Frames that nobody takes are dropped, the oldest first. Reads of
// a frame nothing but its id.
import { createBulkReader } from "../../protocol/bulkStream.ts";
import { protocolVersion } from "../../protocol/daemonMethods.ts";
import { RollscopeError } from "../../protocol/errors.ts";
import type { Launcher } from "./launch.ts";

export interface BulkChannel {
  /** The frame of that id, which came already or will. @throws DAEMON_UNREACHABLE the connection ended before */
  readonly take: (id: number) => Promise<Uint8Array<ArrayBuffer>>;
  readonly dispose: () => void;
}

const keptFrames = 64;

interface Waiting {
  readonly resolve: (bytes: Uint8Array<ArrayBuffer>) => void;
  readonly reject: (error: Error) => void;
}

export async function openBulkChannel(launcher: Launcher, session: string, version: string): Promise<BulkChannel> {
  const child = launcher.start(["daemon", "stdio"]);
  const arrived = new Map<number, Uint8Array<ArrayBuffer>>();
  const waiting = new Map<number, Waiting>();
  let gone: Error | null = null;

  const fail = (sentence: string) => {
    gone ??= new RollscopeError("DAEMON_UNREACHABLE", sentence, {
      next: "Try again; Rollscope: Show Daemon Log says why when it does not come back.",
    });
    for (const { reject } of waiting.values()) reject(gone);
    waiting.clear();
    arrived.clear();
  };

  const onFrame = (bytes: Uint8Array<ArrayBuffer>) => {
    const id = frameId(bytes);
    const taker = waiting.get(id);
    if (taker !== undefined) {
      waiting.delete(id);
      taker.resolve(bytes);
      return;
    }
    arrived.set(id, bytes);
    const oldest = arrived.keys().next();
    if (arrived.size > keptFrames && oldest.done !== true) arrived.delete(oldest.value);
  };

  await new Promise<void>((resolve, reject) => {
    const onAnswer = (json: string) => {
      const answer = JSON.parse(json) as { error?: { message?: string } };
      if (answer.error === undefined) resolve();
      else {
        fail(`The daemon refused the bulk connection: ${answer.error.message ?? "no reason given"}.`);
        child.end();
      }
    };
    const reader = createBulkReader(onAnswer, onFrame);
    child.process.stdout.on("data", (chunk: Buffer) => {
      if (gone !== null) return;
      try {
        reader.push(chunk);
      } catch (error) {
        fail(error instanceof Error ? error.message : String(error));
        child.end();
      }
    });
    void child.ended.then((how) => {
      fail(`The bulk connection to the daemon ended: ${how}. ${child.lastWords()}`.trim());
      reject(gone ?? new Error(how));
    });
    child.process.stdin.write(helloMessage(session, version));
  });
  return {
    take: (id) => {
      const bytes = arrived.get(id);
      if (bytes !== undefined) {
        arrived.delete(id);
        return Promise.resolve(bytes);
      }
      if (gone !== null) return Promise.reject(gone);
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    },
    dispose: () => child.end(),
  };
}

function helloMessage(session: string, version: string): string {
  const params = { protocol: protocolVersion, client: { name: "vscode", version }, channel: "bulk", session };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "hello", params });
  return `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Id of a frame, from its header. */
function frameId(bytes: Uint8Array): number {
  const length = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as { id: number };
  return header.id;
}
