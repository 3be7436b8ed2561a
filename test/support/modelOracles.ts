// The reference values of ../shared/oracles/models as data, whatever values stand in there.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { oraclesPath } from "./paths.ts";

type Nullable = readonly (number | null)[];

export interface TokenValues {
  readonly logprobs: Nullable;
  readonly entropy: Nullable;
}

export interface GradientSummary {
  readonly shape: readonly number[];
  readonly l2: number;
  readonly sum: number;
  readonly first5: readonly number[];
  readonly largest: { readonly index: number; readonly value: number };
}

export interface TrainingRun {
  readonly optimizer: {
    readonly lr: number;
    readonly beta1: number;
    readonly beta2: number;
    readonly eps: number;
    readonly weight_decay: number;
    readonly max_grad_norm: number | null;
    readonly steps: number;
  };
  readonly loss_before_step: readonly number[];
  readonly grad_norm: readonly number[];
  readonly loss_after: number;
  readonly sequence: number;
  readonly logprobs_after: Nullable;
}

export interface ModelOracle {
  readonly sequences: readonly (TokenValues & {
    readonly tokens: readonly number[];
    readonly tempered: TokenValues & { readonly temperature: number };
  })[];
  readonly gradient: {
    readonly sequence: number;
    readonly logprob_cotangent: Nullable;
    readonly entropy_cotangent: Nullable;
    readonly scalar: number;
    readonly params: Readonly<Record<string, GradientSummary>>;
  };
  readonly training: Readonly<Record<string, TrainingRun>>;
  readonly greedy: readonly {
    readonly prompt: readonly number[];
    readonly tokens: readonly number[];
    readonly logprobs: readonly number[];
  }[];
  readonly tree: {
    readonly nodes: readonly {
      readonly id: number;
      readonly parent: number | null;
      readonly token: number;
      readonly depth: number;
    }[];
    readonly paths: readonly { readonly nodes: readonly number[]; readonly logprobs: Nullable }[];
    readonly node_logprobs: Nullable;
    readonly node_cotangent: Nullable;
    readonly scalar: number;
    readonly params: Readonly<Record<string, GradientSummary>>;
  };
  readonly tiny_value_head?: {
    readonly sequence: number;
    readonly weight: readonly number[];
    readonly bias: number;
    readonly values: readonly number[];
    readonly value_cotangent: readonly number[];
    readonly scalar: number;
    readonly params: Readonly<Record<string, GradientSummary>>;
  };
  readonly moe?: {
    readonly sequence: number;
    readonly top_k: number;
    readonly natural: {
      readonly experts: readonly (readonly (readonly number[])[] | null)[];
      readonly weights: readonly (readonly (readonly number[])[] | null)[];
    };
    readonly forced: {
      readonly experts: readonly (readonly (readonly number[])[] | null)[];
      readonly weights: readonly (readonly (readonly number[])[] | null)[];
      readonly logprobs: Nullable;
      readonly entropy: Nullable;
    };
  };
  readonly float32_tolerance: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** Every model folder that has expected values. */
export function modelOracles(): readonly {
  readonly name: string;
  readonly dir: string;
  /** One matrix is embedding and head. */
  readonly tied: boolean;
  readonly expected: ModelOracle;
}[] {
  const root = oraclesPath("models");
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => {
      const dir = join(root, name);
      const read = (file: string): unknown => JSON.parse(readFileSync(join(dir, file), "utf8"));
      const { tie_word_embeddings: tied = false } = read("config.json") as { tie_word_embeddings?: boolean };
      return { name, dir, tied, expected: read("expected.json") as ModelOracle };
    });
}
