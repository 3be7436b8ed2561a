import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { translateSeedConfig } from "../../../agent-daemon/src/recipes/translate.ts";
import { seedKnobs } from "../../../protocol/seedKnobs.ts";

const axisrl = `megatron_worker:
  model: {name: Qwen/Qwen2.5-1.5B-Instruct}
  tp_size: 2
  global_batch_size: 512
grpo: {loss_type: grpo, clip_ratio_high: 0.2, icepop_masking_low: 0.5, icepop_masking_high: 5}
online_rl_train: {max_global_updates: 600, num_rollouts_per_conversation: 16}
train_datasets:
  - {name: gsm8k, data_path: train.jsonl}
foo: {bar: 1}
`;

describe("translating a configuration of a seed stack", () => {
  it("names every setting of an AxisRL file: ours, or why not", () => {
    const { yaml, knobs, problems } = translateSeedConfig("axisrl", axisrl, "run.yaml");
    expect(parse(yaml)).toMatchObject({
      model: { source: "Qwen/Qwen2.5-1.5B-Instruct" },
      data: { train: "train.jsonl" },
      sampling: { tasksPerStep: 32, groupSize: 16 },
      objective: { kind: "grpo", clipHigh: 0.2, aggregation: "token-mean", correction: { tokenMask: [0.5, 5] } },
      training: { steps: 600, seed: 42, lr: 1e-5 },
    });
    expect(parse(yaml).objective).not.toHaveProperty("softClip");
    expect(knobs).toHaveLength(12);
    const of = (name: string) => knobs.find((knob) => knob.knob === name);
    expect(of("megatron_worker.tp_size")).toMatchObject({ outcome: "later", line: 3 });
    expect(of("train_datasets.0.name")).toMatchObject({ outcome: "refused" });
    expect(of("foo.bar")).toMatchObject({ outcome: "unknown", line: 9 });
    expect(problems.map(({ code, path }) => [code, path])).toEqual([["CONFIG_KEY_MISSING", "name"]]);
  });

  it("reads the arguments of an AgentRL script", () => {
    const script = `accelerate launch src/main.py \\
  --model_name_or_path Qwen/Qwen3-4B --loss_calculater=MINIRL --token_level_loss false \\
  --strict_in_bound --preferred_sampling_params '{"temperature":0.7,"top_k":-1}' --epsilon_higher 0.08`;
    const { yaml, knobs } = translateSeedConfig("agentrl", script, "run.sh");
    expect(parse(yaml)).toMatchObject({
      model: { source: "Qwen/Qwen3-4B" },
      sampling: { temperature: 0.7, topK: 0, groupSize: 8 },
      objective: {
        kind: "minirl",
        aggregation: "sequence-mean",
        clipHigh: 0.28,
        correction: { freshness: { decay: 0, capRatio: 1 } },
      },
      advantages: { estimator: "group_mean", dropZero: true },
    });
    expect(knobs.map((knob) => knob.outcome)).toEqual(Array.from({ length: 6 }, () => "translated"));
  });

  it("says why a value of a known knob has no counterpart", () => {
    const { knobs } = translateSeedConfig("axisrl", "grpo: {loss_agg_type: token-max}", "run.yaml");
    expect(knobs[0]).toMatchObject({ outcome: "refused", note: expect.stringContaining("token-max") });
  });

  it("accounts for any value of any knob without failing", () => {
    for (const { stack, path } of seedKnobs)
      for (const value of ["null", "true", "1", "text", "[1, 2]", "-1"]) {
        const { knobs } = translateSeedConfig(stack, `${path}: ${value}\n`, "f");
        expect(knobs).toHaveLength(1);
        const { outcome, note, set } = knobs[0]!;
        expect(outcome === "translated" ? set : note).toBeTruthy();
      }
  });

  it("refuses a text that is no configuration, naming the line", () => {
    expect(() => translateSeedConfig("axisrl", "a: [1\nb", "f.yaml")).toThrow(
      expect.objectContaining({ code: "CONFIG_SYNTAX", message: expect.stringContaining("f.yaml:") }),
    );
  });
});
