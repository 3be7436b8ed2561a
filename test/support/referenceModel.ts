// A tiny causal model in float64 whose outputs depend on the whole path: embedding and position, one attention layer, tanh, head
// and value head. Gradients are written by hand. It is small enough to be checked by eye and by finite differences.

export interface ModelShape {
  readonly vocabulary: number;
  readonly hidden: number;
  readonly maxPositions: number;
}

export type Tensors = Record<"embedding" | "position" | "query" | "key" | "value" | "head" | "valueHead", Float64Array>;

/** Output of one token: log-softmax(logits / T) of it, entropy, value; all read from its predecessor's state. */
export interface TokenOutput {
  readonly logprob: number;
  readonly entropy: number;
  readonly value: number;
}

export interface TokenCotangent {
  readonly logprob: number;
  readonly entropy: number;
  readonly value: number;
}

/** Tokens of a forest: `path[i]` lists the indices that token i attends to, itself last. */
export interface ModelInput {
  readonly tokens: ArrayLike<number>;
  readonly positions: ArrayLike<number>;
  readonly temperature: ArrayLike<number>;
  readonly path: readonly (readonly number[])[];
}

export function tensorSizes({ vocabulary, hidden, maxPositions }: ModelShape): Record<keyof Tensors, number> {
  const square = hidden * hidden;
  return {
    embedding: vocabulary * hidden,
    position: maxPositions * hidden,
    query: square,
    key: square,
    value: square,
    head: vocabulary * hidden,
    valueHead: hidden,
  };
}

export function newTensors(shape: ModelShape, fill: (name: keyof Tensors, index: number) => number): Tensors {
  const tensors: Partial<Tensors> = {};
  for (const [name, size] of Object.entries(tensorSizes(shape)) as [keyof Tensors, number][]) {
    tensors[name] = Float64Array.from({ length: size }, (_, index) => fill(name, index));
  }
  return tensors as Tensors;
}

interface State {
  readonly x: Float64Array;
  readonly q: Float64Array;
  readonly k: Float64Array;
  readonly v: Float64Array;
  readonly attention: Float64Array;
  readonly h: Float64Array;
}

/** One forward over a forest, kept for the backward. */
export class ModelPass {
  readonly #shape: ModelShape;
  readonly #weights: Tensors;
  readonly #input: ModelInput;
  readonly #states: State[] = [];

  constructor(shape: ModelShape, weights: Tensors, input: ModelInput) {
    this.#shape = shape;
    this.#weights = weights;
    this.#input = input;
    for (let i = 0; i < input.tokens.length; i++) this.#states.push(this.#state(i));
  }

  output(index: number): TokenOutput {
    const { h, logProbabilities: logs } = this.#distribution(index);
    let entropy = 0;
    for (const log of logs) entropy -= Math.exp(log) * log;
    return { logprob: logs[this.#input.tokens[index]!]!, entropy, value: dot(this.#weights.valueHead, h, 0) };
  }

  /** Adds the gradient of Σ c·output over the given tokens. */
  backward(cotangents: ReadonlyMap<number, TokenCotangent>, gradient: Tensors): void {
    const { hidden: d } = this.#shape;
    const dh = this.#states.map(() => new Float64Array(d));
    for (const [index, cotangent] of cotangents) this.#backwardHead(index, cotangent, dh, gradient);
    this.#backwardAttention(dh, gradient);
  }

  #state(i: number): State {
    const { hidden: d } = this.#shape;
    const { embedding, position, query, key, value } = this.#weights;
    const x = new Float64Array(d);
    const at = this.#input.positions[i]! * d;
    for (let c = 0; c < d; c++) x[c] = embedding[this.#input.tokens[i]! * d + c]! + position[at + c]!;
    const [q, k, v] = [times(query, x), times(key, x), times(value, x)];
    const own = { k, v };
    const path = this.#input.path[i]!;
    const keyed = (j: number) => (j === i ? own : this.#states[j]!);
    const scores = Float64Array.from(path, (j) => dot(q, keyed(j).k, 0) / Math.sqrt(d));
    const attention = logSoftmax(scores).map(Math.exp);
    const h = new Float64Array(x);
    path.forEach((j, n) => {
      for (let c = 0; c < d; c++) h[c]! += attention[n]! * keyed(j).v[c]!;
    });
    return { x, q, k, v, attention, h: h.map(Math.tanh) };
  }

  #distribution(index: number): { h: Float64Array; logProbabilities: Float64Array; temperature: number } {
    const path = this.#input.path[index]!;
    const { h } = this.#states[path.at(-2)!]!;
    const temperature = this.#input.temperature[index]! || 1;
    const logits = Float64Array.from(
      { length: this.#shape.vocabulary },
      (_, token) => dot(this.#weights.head, h, token * this.#shape.hidden) / temperature,
    );
    return { h, logProbabilities: logSoftmax(logits), temperature };
  }

  #backwardHead(index: number, cotangent: TokenCotangent, dh: Float64Array[], gradient: Tensors): void {
    const { hidden: d, vocabulary } = this.#shape;
    const { head, valueHead } = this.#weights;
    const { h, logProbabilities, temperature } = this.#distribution(index);
    const state = dh[this.#input.path[index]!.at(-2)!]!;
    const { entropy } = this.output(index);
    for (let token = 0; token < vocabulary; token++) {
      const log = logProbabilities[token]!;
      const p = Math.exp(log);
      const chosen = token === this.#input.tokens[index] ? 1 : 0;
      const dLogit = (cotangent.logprob * (chosen - p) - cotangent.entropy * p * (log + entropy)) / temperature;
      for (let c = 0; c < d; c++) {
        gradient.head[token * d + c]! += dLogit * h[c]!;
        state[c]! += dLogit * head[token * d + c]!;
      }
    }
    for (let c = 0; c < d; c++) {
      gradient.valueHead[c]! += cotangent.value * h[c]!;
      state[c]! += cotangent.value * valueHead[c]!;
    }
  }

  #backwardAttention(dh: readonly Float64Array[], gradient: Tensors): void {
    const { hidden: d } = this.#shape;
    const zeros = () => this.#states.map(() => new Float64Array(d));
    const [dx, dq, dk, dv] = [zeros(), zeros(), zeros(), zeros()];
    this.#states.forEach((state, i) => {
      const into = state.h.map((h, c) => dh[i]![c]! * (1 - h * h));
      for (let c = 0; c < d; c++) dx[i]![c]! += into[c]!;
      const path = this.#input.path[i]!;
      const dAttention = path.map((j) => dot(into, this.#states[j]!.v, 0));
      const mean = dAttention.reduce((sum, a, n) => sum + a * state.attention[n]!, 0);
      path.forEach((j, n) => {
        const dScore = (state.attention[n]! * (dAttention[n]! - mean)) / Math.sqrt(d);
        for (let c = 0; c < d; c++) {
          dv[j]![c]! += state.attention[n]! * into[c]!;
          dq[i]![c]! += dScore * this.#states[j]!.k[c]!;
          dk[j]![c]! += dScore * state.q[c]!;
        }
      });
    });
    this.#states.forEach(({ x }, i) => {
      const at = this.#input.positions[i]! * d;
      addOuter(gradient.query, this.#weights.query, dq[i]!, x, dx[i]!);
      addOuter(gradient.key, this.#weights.key, dk[i]!, x, dx[i]!);
      addOuter(gradient.value, this.#weights.value, dv[i]!, x, dx[i]!);
      for (let c = 0; c < d; c++) {
        gradient.embedding[this.#input.tokens[i]! * d + c]! += dx[i]![c]!;
        gradient.position[at + c]! += dx[i]![c]!;
      }
    });
  }
}

function dot(matrix: Float64Array, vector: Float64Array, from: number): number {
  let sum = 0;
  for (let c = 0; c < vector.length; c++) sum += matrix[from + c]! * vector[c]!;
  return sum;
}

function times(matrix: Float64Array, vector: Float64Array): Float64Array {
  return vector.map((_, row) => dot(matrix, vector, row * vector.length));
}

/** y = W x: dW += dy ⊗ x, dx += Wᵀ dy */
function addOuter(dW: Float64Array, W: Float64Array, dy: Float64Array, x: Float64Array, dx: Float64Array): void {
  const d = x.length;
  for (let row = 0; row < d; row++) {
    for (let c = 0; c < d; c++) {
      dW[row * d + c]! += dy[row]! * x[c]!;
      dx[c]! += dy[row]! * W[row * d + c]!;
    }
  }
}

function logSoftmax(scores: Float64Array): Float64Array {
  const most = scores.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const log = most + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - most), 0));
  return scores.map((score) => score - log);
}
