// Typed arrays that grow at the end, with a binary search where they ascend.

const firstCapacity = 16;

abstract class Column<A extends Float64Array | Int32Array> {
  protected array: A;
  #length = 0;

  constructor(first: A) {
    this.array = first;
  }

  protected abstract larger(capacity: number): A;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.array.length) {
      const grown = this.larger(this.array.length * 2);
      grown.set(this.array);
      this.array = grown;
    }
    this.array[this.#length] = value;
    this.#length += 1;
  }

  at(index: number): number {
    return this.array[index]!;
  }

  /** First index whose value is not below `value`; the values ascend. */
  lowerBound(value: number): number {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.array[middle]! < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export class NumberColumn extends Column<Float64Array> {
  constructor() {
    super(new Float64Array(firstCapacity));
  }

  protected larger(capacity: number): Float64Array {
    return new Float64Array(capacity);
  }
}

export class IntColumn extends Column<Int32Array> {
  constructor() {
    super(new Int32Array(firstCapacity));
  }

  protected larger(capacity: number): Int32Array {
    return new Int32Array(capacity);
  }
}
