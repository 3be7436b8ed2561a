// Takes the bytes of a bulk connection apart: one JSON-RPC message (the answer to hello), then frames, each after its length (u32,
// little-endian). Pure; any cut of the stream into chunks gives the same pieces.

export interface BulkReader {
  /** @throws Error when the bytes cannot be such a stream; the connection is closed then */
  push(chunk: Uint8Array): void;
}

/** Frames larger than this are a fault of the sender. */
const greatestFrame = 512 * 1024 * 1024;
const greatestHeader = 4096;

export function createBulkReader(
  onAnswer: (json: string) => void,
  onFrame: (bytes: Uint8Array<ArrayBuffer>) => void,
): BulkReader {
  const chunks: Uint8Array[] = [];
  let held = 0;
  let answered = false;
  /** Bytes of the piece that is being read; null while its length is unknown. */
  let wanted: number | null = null;

  const take = (bytes: number): Uint8Array<ArrayBuffer> => {
    const piece = new Uint8Array(bytes);
    let at = 0;
    while (at < bytes) {
      const chunk = chunks[0]!;
      const part = chunk.subarray(0, bytes - at);
      piece.set(part, at);
      at += part.length;
      if (part.length === chunk.length) chunks.shift();
      else chunks[0] = chunk.subarray(part.length);
    }
    held -= bytes;
    return piece;
  };

  const peek = (bytes: number): string => {
    let text = "";
    for (const chunk of chunks) {
      text += String.fromCharCode(...chunk.subarray(0, bytes - text.length));
      if (text.length >= bytes) break;
    }
    return text;
  };

  const lengthOfAnswer = (): number | null => {
    const seen = peek(greatestHeader);
    const end = seen.indexOf("\r\n\r\n");
    if (end < 0) {
      if (held >= greatestHeader) throw new Error("The bulk connection did not begin with an answer.");
      return null;
    }
    const length = /^content-length: *(\d+)/im.exec(seen.slice(0, end));
    if (length === null) throw new Error("The answer on the bulk connection has no length.");
    take(end + 4);
    return Number(length[1]);
  };

  const lengthOfFrame = (): number | null => {
    if (held < 4) return null;
    const length = new DataView(take(4).buffer).getUint32(0, true);
    if (length > greatestFrame) throw new Error(`A bulk frame of ${length} bytes was announced.`);
    return length;
  };

  return {
    push(chunk) {
      if (chunk.length === 0) return;
      chunks.push(chunk);
      held += chunk.length;
      for (;;) {
        wanted ??= answered ? lengthOfFrame() : lengthOfAnswer();
        if (wanted === null || held < wanted) return;
        const piece = take(wanted);
        wanted = null;
        if (answered) onFrame(piece);
        else {
          answered = true;
          onAnswer(new TextDecoder().decode(piece));
        }
      }
    },
  };
}
