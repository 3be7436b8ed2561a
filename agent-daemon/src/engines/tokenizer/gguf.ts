// Reads the header of a GGUF file: the keys and values, and on request the table of tensors. It must never read tensor
// data, and it never guesses: a file that is short or malformed is refused with the byte where reading stopped.
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { RollscopeError } from "../../../../protocol/errors.ts";

export type GgufValue = number | bigint | boolean | string | readonly GgufValue[];

export interface GgufMetadata {
  readonly path: string;
  readonly version: number;
  readonly tensorCount: number;
  /** In file order. 64-bit integers beyond 2^53 are bigint. */
  readonly values: ReadonlyMap<string, GgufValue>;
}

export interface GgufTensor {
  readonly name: string;
  /** Fastest-running axis first, as the format has it: [columns, rows] for a matrix. */
  readonly dims: readonly number[];
  /** Number of the element type, as the format counts them. */
  readonly type: number;
  /** Position in the file. */
  readonly offset: number;
}

const supportedVersions: readonly number[] = [2, 3];
const chunkBytes = 1 << 20;
const arrayType = 9;
const deepestArray = 4;
const strictText = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Smallest number of bytes one value of a type takes, by type number: bounds an array's claimed length before allocation. */
const smallestBytes = [1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8];

/** Errors: ENGINE_MODEL_NOT_FOUND, ENGINE_FILE_TRUNCATED, ENGINE_FILE_INVALID. */
export function readGgufMetadata(path: string): GgufMetadata {
  return withCursor(path, readHeader);
}

/** The header and the table of tensors. Errors as readGgufMetadata. */
export function readGgufTensors(path: string): GgufMetadata & { readonly tensors: readonly GgufTensor[] } {
  return withCursor(path, (cursor) => {
    const metadata = readHeader(cursor);
    return { ...metadata, tensors: readTensorTable(cursor, metadata) };
  });
}

function withCursor<T>(path: string, read: (cursor: HeaderCursor) => T): T {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (cause) {
    throw new RollscopeError("ENGINE_MODEL_NOT_FOUND", `The model file ${path} cannot be opened.`, {
      next: "Check the path, or run `npm run setup` to fetch the model.",
      at: { file: path },
      cause,
    });
  }
  try {
    return read(new HeaderCursor(descriptor, path));
  } finally {
    closeSync(descriptor);
  }
}

function readHeader(cursor: HeaderCursor): GgufMetadata {
  if (cursor.bytes(4).toString("latin1") !== "GGUF") throw cursor.invalid("does not start with GGUF");
  const version = cursor.u32();
  if (!supportedVersions.includes(version)) {
    throw cursor.invalid(`has version ${version}; versions ${supportedVersions.join(" and ")} are read`);
  }
  const tensorCount = cursor.count("number of tensors");
  const keyCount = cursor.count("number of keys");
  const values = new Map<string, GgufValue>();
  for (let index = 0; index < keyCount; index++) {
    const key = cursor.text();
    if (values.has(key)) throw cursor.invalid(`has the key ${key} twice`);
    values.set(key, readValue(cursor, cursor.u32(), 0));
  }
  return { path: cursor.path, version, tensorCount, values };
}

function readTensorTable(cursor: HeaderCursor, metadata: GgufMetadata): readonly GgufTensor[] {
  const table: GgufTensor[] = [];
  const names = new Set<string>();
  for (let index = 0; index < metadata.tensorCount; index++) {
    const name = cursor.text();
    if (names.has(name)) throw cursor.invalid(`has the tensor ${name} twice`);
    names.add(name);
    const axes = cursor.u32();
    if (axes < 1 || axes > 4) throw cursor.invalid(`gives the tensor ${name} ${axes} axes`);
    const dims = Array.from({ length: axes }, () => cursor.whole(`size of ${name}`));
    table.push({ name, dims, type: cursor.u32(), offset: cursor.whole(`offset of ${name}`) });
  }
  const alignment = metadata.values.get("general.alignment") ?? 32;
  if (typeof alignment !== "number" || alignment < 1) throw cursor.invalid("has an unusable general.alignment");
  const start = Math.ceil(cursor.position / alignment) * alignment;
  return table.map((tensor) => ({ ...tensor, offset: start + tensor.offset }));
}

function readValue(cursor: HeaderCursor, type: number, depth: number): GgufValue {
  switch (type) {
    case 0:
      return cursor.bytes(1).readUInt8();
    case 1:
      return cursor.bytes(1).readInt8();
    case 2:
      return cursor.bytes(2).readUInt16LE();
    case 3:
      return cursor.bytes(2).readInt16LE();
    case 4:
      return cursor.u32();
    case 5:
      return cursor.bytes(4).readInt32LE();
    case 6:
      return cursor.bytes(4).readFloatLE();
    case 7: {
      const flag = cursor.bytes(1).readUInt8();
      if (flag > 1) throw cursor.invalid(`holds ${flag} where a boolean is expected`);
      return flag === 1;
    }
    case 8:
      return cursor.text();
    case arrayType: {
      const elementType = cursor.u32();
      const length = cursor.count("length of an array");
      if (depth >= deepestArray) throw cursor.invalid("nests arrays too deeply");
      cursor.expectRoom(length * (smallestBytes[elementType] ?? 1));
      const items: GgufValue[] = [];
      for (let index = 0; index < length; index++) items.push(readValue(cursor, elementType, depth + 1));
      return items;
    }
    case 10:
      return narrow(cursor.bytes(8).readBigUInt64LE());
    case 11:
      return narrow(cursor.bytes(8).readBigInt64LE());
    case 12:
      return cursor.bytes(8).readDoubleLE();
    default:
      throw cursor.invalid(`has a value of unknown type ${type}`);
  }
}

function narrow(value: bigint): number | bigint {
  const asNumber = Number(value);
  return Number.isSafeInteger(asNumber) ? asNumber : value;
}

/** Sequential reader that loads the file piece by piece, so that a header of a few megabytes never pulls in the weights. */
class HeaderCursor {
  readonly path: string;
  private readonly descriptor: number;
  private readonly size: number;
  private loaded = Buffer.alloc(0);
  /** File offset of loaded[0]. */
  private base = 0;
  private at = 0;

  constructor(descriptor: number, path: string) {
    this.descriptor = descriptor;
    this.path = path;
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) throw this.invalid("is not a regular file");
    this.size = stat.size;
  }

  bytes(length: number): Buffer {
    this.expectRoom(length);
    const start = this.at - this.base;
    if (start + length > this.loaded.length) this.load(length);
    const from = this.at - this.base;
    this.at += length;
    return this.loaded.subarray(from, from + length);
  }

  u32(): number {
    return this.bytes(4).readUInt32LE();
  }

  count(what: string): number {
    const value = this.bytes(8).readBigUInt64LE();
    if (value > BigInt(this.size)) throw this.invalid(`claims ${value} as ${what}, more than the file has bytes`);
    return Number(value);
  }

  whole(what: string): number {
    const value = this.bytes(8).readBigUInt64LE();
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw this.invalid(`claims ${value} as ${what}`);
    return Number(value);
  }

  get position(): number {
    return this.at;
  }

  text(): string {
    const raw = this.bytes(this.count("length of a text"));
    try {
      return strictText.decode(raw);
    } catch (cause) {
      throw this.invalid("has a text that is not UTF-8", cause);
    }
  }

  expectRoom(length: number): void {
    if (this.at + length <= this.size) return;
    throw new RollscopeError("ENGINE_FILE_TRUNCATED", `The model file ${this.path} ends inside its header.`, {
      next: "Fetch the file again; the download did not finish.",
      at: { file: this.path, byte: this.at, size: this.size },
    });
  }

  invalid(what: string, cause?: unknown): RollscopeError {
    return new RollscopeError("ENGINE_FILE_INVALID", `The model file ${this.path} ${what}.`, {
      next: "Use a little-endian GGUF file of version 2 or 3.",
      at: { file: this.path, byte: this.at },
      cause,
    });
  }

  private load(length: number): void {
    const wanted = Math.min(Math.max(length, chunkBytes), this.size - this.at);
    const piece = Buffer.alloc(wanted);
    let filled = 0;
    while (filled < wanted) {
      const got = readSync(this.descriptor, piece, filled, wanted - filled, this.at + filled);
      if (got === 0) break;
      filled += got;
    }
    this.loaded = piece.subarray(0, filled);
    this.base = this.at;
    if (filled < length) this.expectRoom(Number.POSITIVE_INFINITY);
  }
}
