// One trajectory being captured: takes requests, decides their prompts, has them answered, keeps everything. Calls may run at
// the same time; the tree grows in the order they end. It must never lose a call, whatever became of it.

import type { ChatMessage } from "../../../protocol/agent.ts";
import { leastBetweenStarts } from "../../../protocol/call.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { GenerateRequest, InferenceEngine } from "../engines/interface.ts";
import type { Tokenizer } from "../engines/tokenizer/tokenizer.ts";
import { type CapturedCall, conversationTokens, messageCount } from "./capturedCall.ts";
import type { CompletionRequest } from "./completion.ts";
import { type ConversationText, type PromptSettings, promptSettings } from "./conversationText.ts";
import { type After, generateAnswer, type Sampled } from "./generation.ts";
import { messageKey } from "./messages.ts";
import { MessageTree } from "./messageTree.ts";
import { noDrift, type PromptPlan, planPrompt, shapeOf } from "./promptPlan.ts";
import { hash32 } from "./streamSeed.ts";

export interface CaptureSettings {
  readonly maxNewTokens: number;
  /** Most requests; one more fails with CAPTURE_TURN_LIMIT. null = no limit. */
  readonly maxTurns: number | null;
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly stop: readonly string[];
  /** Default exact. */
  readonly history?: "exact" | "rerender";
  /** Milliseconds one call may take; null = no limit, the default. */
  readonly callLimit?: number | null;
  /** Share of requests whose prompt is compared with a whole render, beside the first of each shape. Default 1 %. */
  readonly verifyFraction?: number;
}

/** What all sessions of a run share. */
export interface CaptureModel {
  readonly engine: InferenceEngine;
  readonly tokenizer: Tokenizer;
  readonly text: ConversationText;
  readonly stopIds: readonly number[];
  /** Shapes of continuation that were compared with a whole render. */
  readonly verifiedShapes: Set<string>;
}

/** Scripted mode: the text of the next answer, or null to sample it. */
export type Script = (call: { readonly index: number; readonly messages: readonly ChatMessage[] }) => string | null;

export interface CaptureSessionOptions {
  readonly record: string;
  readonly settings: CaptureSettings;
  readonly model: CaptureModel;
  /** Names the record's random streams. */
  readonly key: { readonly seed: number; readonly record: number };
  /** Aborted when the rollout is over. */
  readonly signal: AbortSignal;
  readonly onCall?: (moment: "begun" | "ended") => void;
  /** Told of every call that ended, in order; whether it is stored is the listener's business. */
  readonly onEnded?: (call: CapturedCall) => void;
  readonly script?: Script;
  readonly now?: () => number;
  readonly after?: After;
}

const defaultVerifyFraction = 0.01;

interface Begun {
  readonly id: string;
  readonly index: number;
  /** Place among the answers to one request. */
  readonly sibling: number;
  readonly started: number;
}

export class CaptureSession {
  readonly record: string;
  private readonly options: CaptureSessionOptions;
  private readonly now: () => number;
  private readonly tree = new MessageTree();
  private readonly ended: CapturedCall[] = [];
  private readonly settingsOf = new WeakMap<CapturedCall, PromptSettings>();
  private readonly running = new Set<Promise<unknown>>();
  private readonly over = new AbortController();
  private requests = 0;
  private nextIndex = 0;
  private lastStart = Number.NEGATIVE_INFINITY;
  private compacted: CapturedCall | null = null;

  constructor(options: CaptureSessionOptions) {
    this.options = options;
    this.record = options.record;
    this.now = options.now ?? Date.now;
  }

  get tokenizer(): Tokenizer {
    return this.options.model.tokenizer;
  }

  /** In the order they ended; failed and cancelled ones too. */
  get calls(): readonly CapturedCall[] {
    return this.ended;
  }

  /** The next request's history stands in the place of the conversation so far. */
  compact(): void {
    this.compacted = this.tree.latest;
  }

  /**
   * Errors: CAPTURE_SESSION_CLOSED, CAPTURE_TURN_LIMIT, CAPTURE_CONTEXT_OVERFLOW, CAPTURE_CALL_TIMEOUT, CAPTURE_CALL_CANCELLED,
   * CAPTURE_ENGINE_FAILED, those of the template and of the engine. What was sampled until then is in `calls`.
   */
  async complete(request: CompletionRequest): Promise<readonly CapturedCall[]> {
    if (this.over.signal.aborted) throw this.closedError();
    const { maxTurns } = this.options.settings;
    if (maxTurns !== null && this.requests >= maxTurns) {
      throw new RollscopeError(
        "CAPTURE_TURN_LIMIT",
        `The rollout of ${this.record} wants more than ${maxTurns} calls.`,
        {
          next: "End the rollout earlier, or raise sampling.maxTurns.",
          at: { record: this.record },
        },
      );
    }
    this.requests++;
    this.options.onCall?.("begun");
    const work = this.answer(request);
    this.running.add(work);
    try {
      return await work;
    } finally {
      this.running.delete(work);
      this.options.onCall?.("ended");
    }
  }

  /** Cancels what runs and waits until it is on record; later requests are refused. */
  async close(): Promise<void> {
    this.over.abort(this.closedError());
    await Promise.allSettled([...this.running]);
  }

  private async answer(request: CompletionRequest): Promise<readonly CapturedCall[]> {
    const siblings = Array.from({ length: request.n }, (_, sibling) => this.begin(sibling));
    const settings = promptSettings(request.tools, request.variables);
    const keys = request.messages.map(messageKey);
    let plan: PromptPlan;
    try {
      plan = this.plan(request, keys, settings);
    } catch (cause) {
      const error = this.named(cause, siblings[0]?.id ?? "");
      for (const begun of siblings) this.end(this.unanswered(begun, request, settings, error), null);
      throw error;
    }
    const results = await Promise.all(siblings.map((begun) => this.sample(begun, request, plan, settings, keys)));
    const failed = results.find((call) => call.error !== null);
    if (failed?.error) throw failed.error;
    return results;
  }

  private begin(sibling: number): Begun {
    const index = this.nextIndex++;
    this.lastStart = Math.max(this.now(), this.lastStart + leastBetweenStarts);
    return { id: `${this.record}-c${index}`, index, sibling, started: this.lastStart };
  }

  private plan(request: CompletionRequest, keys: readonly string[], settings: PromptSettings): PromptPlan {
    const { model, settings: chosen } = this.options;
    const match = this.tree.match(keys);
    const { compacted } = this;
    this.compacted = null;
    const shape = shapeOf(request.messages, match.call === null ? 0 : messageCount(match.call), request.tools);
    const isNewShape = !model.verifiedShapes.has(shape);
    model.verifiedShapes.add(shape);
    return planPrompt(
      {
        messages: request.messages,
        settings,
        parentSettings: match.call === null ? null : (this.settingsOf.get(match.call) ?? null),
        match,
        compacted,
        verify: isNewShape || this.isChecked(this.nextIndex),
      },
      { text: model.text, tokenizer: model.tokenizer, history: chosen.history ?? "exact" },
    );
  }

  /** A fixed choice, so that two runs of one seed do the same. */
  private isChecked(index: number): boolean {
    return (
      hash32(`${this.options.key.record}/${index}`) / 2 ** 32 <
      (this.options.settings.verifyFraction ?? defaultVerifyFraction)
    );
  }

  private async sample(
    begun: Begun,
    request: CompletionRequest,
    plan: PromptPlan,
    settings: PromptSettings,
    keys: readonly string[],
  ): Promise<CapturedCall> {
    const { model, settings: chosen } = this.options;
    const promptTokens = plan.keptTokens + plan.delta.length;
    const room = model.engine.info().maxPositions - promptTokens;
    const limit = Math.min(request.maxTokens ?? chosen.maxNewTokens, chosen.maxNewTokens, room);
    if (limit < 1) {
      const error = this.overflow(begun, promptTokens);
      return this.end(this.unanswered(begun, request, settings, error, plan), null);
    }
    const prompt = new Int32Array(promptTokens);
    if (plan.parent !== null) prompt.set(conversationTokens(plan.parent, plan.keptTokens));
    prompt.set(plan.delta, plan.keptTokens);
    const generate: GenerateRequest = {
      tokens: prompt,
      maxNewTokens: limit,
      temperature: chosen.temperature,
      topP: chosen.topP,
      topK: chosen.topK,
      minP: chosen.minP,
      stopIds: model.stopIds,
      stopStrings: [...new Set([...chosen.stop, ...request.stop])],
      key: { ...this.options.key, call: this.streamOf(begun, request) },
      topAlternatives: request.topAlternatives,
      ...this.forced(begun, request, limit),
    };
    const signals = [this.options.signal, this.over.signal, ...(request.signal ? [request.signal] : [])];
    const sampled = await generateAnswer(generate, {
      engine: model.engine,
      tokenizer: model.tokenizer,
      signal: AbortSignal.any(signals),
      limitMilliseconds: chosen.callLimit ?? null,
      now: this.now,
      after: this.options.after ?? afterTimer,
      place: { record: this.record, call: begun.id },
    });
    return this.end(this.captured(begun, request, settings, plan, sampled, promptTokens), keys, settings);
  }

  /** A seed of the client makes a call repeatable within its record without making the samples of a group alike. */
  private streamOf(begun: Begun, request: CompletionRequest): number {
    if (request.seed === null) return begun.index;
    return hash32(`seed/${request.seed}/${begun.sibling}`);
  }

  private forced(begun: Begun, request: CompletionRequest, limit: number): { forced?: Int32Array } {
    const text = this.options.script?.({ index: begun.index, messages: request.messages }) ?? null;
    if (text === null) return {};
    const { tokenizer, stopIds } = this.options.model;
    const ids = tokenizer.encode(text, { special: "parse" });
    const end = stopIds[0];
    if (end !== undefined && !stopIds.includes(ids.at(-1) ?? -1)) ids.push(end);
    return { forced: Int32Array.from(ids.slice(0, limit)) };
  }

  private captured(
    begun: Begun,
    request: CompletionRequest,
    settings: PromptSettings,
    plan: PromptPlan,
    sampled: Sampled,
    promptTokens: number,
  ): CapturedCall {
    const isAnswered = sampled.error === null;
    return {
      ...this.base(begun, request, settings, plan),
      output: sampled.output,
      logprobs: sampled.logprobs,
      sampledLogprobs: sampled.sampledLogprobs,
      alternatives: sampled.alternatives,
      versions: sampled.versions,
      status: isAnswered ? "completed" : sampled.finish === "abort" ? "cancelled" : "failed",
      message: isAnswered || sampled.output.length > 0 ? { role: "assistant", content: sampled.text } : null,
      text: sampled.text,
      finishReason: sampled.finish,
      usage: { promptTokens, completionTokens: sampled.output.length, cachedTokens: sampled.cachedTokens },
      error: sampled.error,
      firstToken: sampled.firstToken,
    };
  }

  private unanswered(
    begun: Begun,
    request: CompletionRequest,
    settings: PromptSettings,
    error: RollscopeError,
    plan: PromptPlan | null = null,
  ): CapturedCall {
    const root = { parent: null, keptMessages: 0, keptTokens: 0, delta: new Int32Array(0), drift: noDrift };
    const none = new Float32Array(0);
    return {
      ...this.base(begun, request, settings, plan ?? root),
      output: new Int32Array(0),
      logprobs: none,
      sampledLogprobs: null,
      alternatives: null,
      versions: [],
      status: "failed",
      message: null,
      text: "",
      finishReason: "error",
      usage: { promptTokens: plan ? plan.keptTokens + plan.delta.length : 0, completionTokens: 0, cachedTokens: 0 },
      error,
      firstToken: null,
    };
  }

  private base(begun: Begun, request: CompletionRequest, settings: PromptSettings, plan: PromptPlan) {
    const inherited = plan.parent === null ? null : this.settingsOf.get(plan.parent);
    return {
      id: begun.id,
      index: begun.index,
      started: begun.started,
      record: this.record,
      parent: plan.parent,
      keptMessages: plan.keptMessages,
      keptTokens: plan.keptTokens,
      messages: request.messages.slice(plan.keptMessages),
      tools: inherited?.toolsKey === settings.toolsKey ? null : request.tools,
      asked: request.asked,
      client: request.client,
      dialect: request.dialect,
      promptDelta: plan.delta,
      temperature: this.options.settings.temperature,
      drift: plan.drift,
      ended: this.now(),
    };
  }

  private end(call: CapturedCall, keys: readonly string[] | null, settings?: PromptSettings): CapturedCall {
    this.ended.push(call);
    if (settings) this.settingsOf.set(call, settings);
    if (keys !== null && call.status === "completed" && call.message !== null) {
      this.tree.add(call, [...keys, messageKey(call.message)]);
    }
    this.options.onEnded?.(call);
    return call;
  }

  private named(cause: unknown, call: string): RollscopeError {
    if (!(cause instanceof RollscopeError)) throw cause;
    const at = { record: this.record, call, ...cause.at };
    return new RollscopeError(cause.code, cause.message, { next: cause.next, cause, at });
  }

  private overflow(begun: Begun, promptTokens: number): RollscopeError {
    const limit = this.options.model.engine.info().maxPositions;
    return new RollscopeError(
      "CAPTURE_CONTEXT_OVERFLOW",
      `The prompt of call ${begun.id} has ${promptTokens} tokens; the model takes ${limit}, the answer's included.`,
      {
        next: "Shorten the history (agent.compact() declares that), or use a model with a longer context.",
        at: { record: this.record, call: begun.id, promptTokens, limit },
      },
    );
  }

  private closedError(): RollscopeError {
    return new RollscopeError("CAPTURE_SESSION_CLOSED", `The session of ${this.record} is closed.`, {
      next: "Make all calls before rollout returns.",
      at: { record: this.record },
    });
  }
}

function afterTimer(milliseconds: number, then: () => void): () => void {
  const timer = setTimeout(then, milliseconds);
  return () => clearTimeout(timer);
}
