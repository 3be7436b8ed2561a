// The order in which tasks are taken: a pure function of (seed, epoch), so that a run which resumes at (epoch, position) goes
// on exactly where it was. No generator state is ever kept.

/** Where a run stands: so many tasks of this epoch have been taken. */
export interface DataPosition {
  readonly epoch: number;
  readonly position: number;
}

const mask = (1n << 64n) - 1n;

/** The finaliser of SplitMix64: every bit of the output depends on every bit of the input. */
function mix(value: bigint): bigint {
  let z = value & mask;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
  return z ^ (z >> 31n);
}

/** A number in [0, 1) of 53 bits that depends on these counters alone. */
export function counterRandom(seed: number, ...counters: readonly number[]): number {
  let state = mix(BigInt(seed) + 0x9e3779b97f4a7c15n);
  for (const counter of counters) state = mix(state + 0x9e3779b97f4a7c15n * BigInt(counter + 1));
  return Number(state >> 11n) / 2 ** 53;
}

// Streams of the same seed that must not repeat each other.
const shuffleStream = 1;
const heldOutStream = 2;

/** [count] the order of epoch `epoch`: Fisher–Yates with one counter number an exchange. */
export function epochOrder(count: number, seed: number, epoch: number): Int32Array {
  const order = Int32Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last--) {
    const other = Math.floor(counterRandom(seed, shuffleStream, epoch, last) * (last + 1));
    const kept = order[last]!;
    order[last] = order[other]!;
    order[other] = kept;
  }
  return order;
}

/** Row numbers of the `chosen` rows with the smallest hash of (seed, row), in file order. */
export function chooseHeldOut(count: number, chosen: number, seed: number): number[] {
  return Array.from({ length: count }, (_, row) => ({ row, key: counterRandom(seed, heldOutStream, row) }))
    .sort((a, b) => a.key - b.key || a.row - b.row)
    .slice(0, chosen)
    .map(({ row }) => row)
    .sort((a, b) => a - b);
}

/** Takes one item after the other, epoch after epoch, for ever. */
export class DataCursor {
  readonly #count: number;
  readonly #orderOf: (epoch: number) => Int32Array | null;
  #epoch: number;
  #position: number;
  #order: Int32Array | null;

  /**
   * @param count items an epoch has, at least 1
   * @param seed null: as the items stand
   */
  constructor(count: number, seed: number | null, start: DataPosition = { epoch: 0, position: 0 }) {
    this.#count = count;
    this.#orderOf = (epoch) => (seed === null ? null : epochOrder(count, seed, epoch));
    this.#epoch = start.epoch + Math.floor(start.position / count);
    this.#position = start.position % count;
    this.#order = this.#orderOf(this.#epoch);
  }

  /** What `next` gives next. */
  get at(): DataPosition {
    return { epoch: this.#epoch, position: this.#position };
  }

  /** The next item's number and the epoch that it is taken in. */
  next(): { readonly item: number; readonly epoch: number } {
    const taken = { item: this.#order?.[this.#position] ?? this.#position, epoch: this.#epoch };
    this.#position++;
    if (this.#position === this.#count) {
      this.#position = 0;
      this.#epoch++;
      this.#order = this.#orderOf(this.#epoch);
    }
    return taken;
  }
}
