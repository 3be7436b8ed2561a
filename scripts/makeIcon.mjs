// Draws media/icon.png, the extension's picture in lists: the scope of media/rollscope.svg on a dark disc. Run it after changing the
// mark; the result is committed, because the Marketplace takes no SVG.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { rootDir } from "./paths.mjs";

const size = 256;
/** Units of media/rollscope.svg. */
const scale = size / 28;
const trace = [
  [5.5, 15.5],
  [9, 11],
  [12, 13.6],
  [15.2, 8.2],
  [18.5, 11.2],
];

function toSegment(x, y, [ax, ay], [bx, by]) {
  const [dx, dy] = [bx - ax, by - ay];
  const t = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy)));
  return Math.hypot(x - ax - t * dx, y - ay - t * dy);
}

/** Colour of a point, from back to front; alpha 0 outside of the disc. */
function colorAt(x, y) {
  const radius = Math.hypot(x - 12, y - 12);
  if (Math.hypot(x - 15.2, y - 8.2) < 1.7) return [255, 183, 77, 255];
  if (trace.slice(1).some((end, index) => toSegment(x, y, trace[index], end) < 0.85)) return [79, 195, 247, 255];
  if (Math.abs(radius - 9.4) < 0.7) return [236, 239, 241, 255];
  return radius < 13.6 ? [23, 32, 42, 255] : [23, 32, 42, 0];
}

const samples = 4;
const rows = Buffer.alloc(size * (size * 4 + 1));
for (let row = 0; row < size; row++) {
  for (let column = 0; column < size; column++) {
    const sum = [0, 0, 0, 0];
    for (let i = 0; i < samples * samples; i++) {
      const x = (column + ((i % samples) + 0.5) / samples) / scale - 2;
      const y = (row + (Math.floor(i / samples) + 0.5) / samples) / scale - 2;
      const [red, green, blue, alpha] = colorAt(x, y);
      for (const [channel, value] of [red * alpha, green * alpha, blue * alpha].entries()) sum[channel] += value;
      sum[3] += alpha;
    }
    const at = row * (size * 4 + 1) + 1 + column * 4;
    for (let channel = 0; channel < 3; channel++) {
      rows[at + channel] = sum[3] === 0 ? 0 : Math.round(sum[channel] / sum[3]);
    }
    rows[at + 3] = Math.round(sum[3] / (samples * samples));
  }
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const whole = Buffer.alloc(body.length + 8);
  whole.writeUInt32BE(data.length, 0);
  body.copy(whole, 4);
  whole.writeUInt32BE(crc32(body), body.length + 4);
  return whole;
}

const header = Buffer.alloc(13);
header.writeUInt32BE(size, 0);
header.writeUInt32BE(size, 4);
header.set([8, 6, 0, 0, 0], 8);
const png = Buffer.concat([
  Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
  chunk("IHDR", header),
  chunk("IDAT", deflateSync(rows, { level: 9 })),
  chunk("IEND", Buffer.alloc(0)),
]);
writeFileSync(join(rootDir, "media", "icon.png"), png);
