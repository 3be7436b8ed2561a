// One trajectory as documents of the store: what was put in and what was sampled become calls, answers of tools become tool events,
// everything else the record. Turns come a page at a time; nothing here may need all of them.
import type { ChatMessage, JsonValue, ToolDefinition } from "../../../../protocol/agent.ts";
import { type CallDocument, leastBetweenStarts } from "../../../../protocol/call.ts";
import type { ImportedTrajectory, ImportedTurn } from "../../../../protocol/importedTrajectory.ts";
import { newRecord, type RecordDocument, type ToolEventDocument } from "../../../../protocol/record.ts";
import { encodeColumns } from "../columns.ts";
import type { BlobStore, RecordStore } from "../interface.ts";
import { type JsonObject, parseExact } from "./jsonText.ts";
import { assistantMessage, CallNames, givenMessage } from "./storedMessages.ts";

const callsAtOnce = 200;
/** Advantages are kept with the record up to so many tokens. */
const mostAdvantages = 200_000;
/** Formats that write the parts of one answer as items of their own. */
const itemFormats = new Set(["nemo-gym", "openai-responses"]);

export function finite(value: number | null): number | null {
  return value !== null && Number.isFinite(value) ? value : null;
}

export function splitOf(split: string | null): RecordDocument["split"] {
  return split === null || split === "train" ? "train" : "heldOut";
}

/** Numbers as words where JSON has none. */
function jsonNumber(value: number | string | null): JsonValue {
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}

/** Takes the turns of one trajectory in order and writes its calls and tool events as it goes, its record at the end. */
export class RecordWriter {
  callCount = 0;
  eventCount = 0;
  private readonly names = new CallNames();
  private pending: ChatMessage[] = [];
  private answer: ImportedTurn | null = null;
  private calls: CallDocument[] = [];
  private events: ToolEventDocument[] = [];
  private parent: { readonly id: string; readonly messages: number; readonly tokens: number } | null = null;
  private dispatched = 0;
  private clock: number;
  private lastStart = Number.NEGATIVE_INFINITY;
  /** Prompt tokens since the last sampled one; null when the trajectory has none, or none that fit calls. */
  private prompt: number[] | null = [];
  private turnNumber = 0;
  private readonly advantages: number[] = [];
  private outputTokens = 0;
  private toolErrors = 0;
  private drifted = false;
  private lastFinish: string | null = null;

  constructor(
    private readonly store: RecordStore,
    private readonly blobs: BlobStore,
    private readonly about: ImportedTrajectory,
    private readonly id: string,
    private readonly run: string,
    private readonly created: number,
  ) {
    this.clock = about.started ?? created;
    if (!about.columns.includes("id")) this.prompt = null;
  }

  async add(turns: readonly ImportedTurn[]): Promise<void> {
    for (const turn of turns) {
      const sampled = turn.role === "assistant" && turn.trainable;
      if (this.answer !== null && sampled && itemFormats.has(this.about.format)) {
        this.answer = {
          ...this.answer,
          parts: [...this.answer.parts, ...turn.parts],
          toolCalls: [...this.answer.toolCalls, ...turn.toolCalls],
        };
      } else {
        await this.flushAnswer();
        if (sampled) this.answer = turn;
        else await this.give(turn);
      }
      this.turnNumber++;
    }
  }

  async finish(place: { readonly task: string; readonly sample: number; readonly file: string }): Promise<void> {
    await this.flushAnswer();
    // What came after the last answer was shown to nobody: it stands in a call that was never made.
    if (this.pending.length > 0) await this.call(null);
    await this.store.records.insert([this.record(place)]);
    await this.flush();
  }

  /** What was put in: a message of the next request, an answer of a tool. */
  private async give(turn: ImportedTurn): Promise<void> {
    this.addPrompt(turn);
    if (turn.role === "assistant") {
      const message = await assistantMessage(turn, this.names.ask(turn.toolCalls, ""), this.blobs);
      this.pending.push({ ...message, weight: 0 } as ChatMessage);
      return;
    }
    if (turn.role !== "tool") {
      this.pending.push(await givenMessage(turn, null, this.blobs));
      return;
    }
    const asked = this.names.answer(turn.result?.callId ?? null);
    const message = await givenMessage(turn, turn.result?.callId ?? asked?.id ?? null, this.blobs);
    this.pending.push(message);
    const failed = turn.result?.error ?? null;
    if (failed !== null) this.toolErrors++;
    const from = asked === null || asked.from === "" ? null : asked.from;
    const at = this.tick(turn.started);
    this.events.push({
      id: `${this.id}-t${this.eventCount}`,
      run: this.run,
      record: this.id,
      index: this.eventCount++,
      call: from,
      name: turn.result?.name ?? asked?.name ?? "",
      arguments: asked === null ? null : parsedOrText(asked.arguments),
      result: typeof message.content === "string" ? message.content : (message.content as unknown as JsonValue),
      error: failed === null ? null : { code: "TOOL_FAILED", message: failed, call: from },
      started: at,
      durationMs: 0,
    });
  }

  private async flushAnswer(): Promise<void> {
    if (this.answer === null) return;
    const answer = this.answer;
    this.answer = null;
    await this.call(answer);
  }

  private async call(answer: ImportedTurn | null): Promise<void> {
    const id = `${this.id}-c${this.dispatched}`;
    const started = this.start(answer?.started ?? null);
    const ended = answer === null ? null : this.tick(answer.ended);
    const tokens = this.sampledTokens(answer);
    const columns = await encodeColumns(this.blobs, [tokens.prompt, tokens.output, tokens.logprobs]);
    const [promptDelta, output, logprobs] = columns as [
      CallDocument["output"],
      CallDocument["output"],
      CallDocument["output"],
    ];
    const message =
      answer === null ? null : await assistantMessage(answer, this.names.ask(answer.toolCalls, id), this.blobs);
    const kept = this.parent;
    const { branch } = this.about;
    const drifts = branch?.drifted === true && !this.drifted && this.turnNumber > (branch.parts ?? 0);
    if (drifts) this.drifted = true;
    const finish = answer?.finishReason ?? null;
    this.lastFinish = finish;
    this.calls.push({
      id,
      run: this.run,
      record: this.id,
      parent: kept?.id ?? null,
      index: this.dispatched++,
      status: answer === null ? "cancelled" : "completed",
      tries: [],
      client: this.about.format,
      dialect: "imported",
      keptMessages: kept?.messages ?? 0,
      keptTokens: kept?.tokens ?? 0,
      request: { messages: this.pending, tools: kept === null ? this.toolDefinitions() : null, asked: {} },
      promptDelta,
      output,
      logprobs,
      sampledLogprobs: null,
      temperature: 1,
      versions: [],
      routing: null,
      message,
      finishReason: answer === null ? null : finishOf(finish, answer),
      usage: {
        promptTokens: (kept?.tokens ?? 0) + tokens.prompt.length,
        completionTokens: tokens.output.length,
        cachedTokens: 0,
      },
      error: null,
      drift: drifts
        ? { kind: "retoken", at: null, text: "", trainedTokens: 0 }
        : { kind: "none", at: null, text: "", trainedTokens: 0 },
      started,
      firstToken: null,
      ended,
    });
    if (answer !== null) this.callCount++;
    this.outputTokens += tokens.output.length;
    this.parent = {
      id,
      messages: (kept?.messages ?? 0) + this.pending.length + (message === null ? 0 : 1),
      tokens: (kept?.tokens ?? 0) + tokens.prompt.length + tokens.output.length,
    };
    this.pending = [];
    if (this.calls.length >= callsAtOnce) await this.flush();
  }

  private async flush(): Promise<void> {
    await this.store.calls.insert(this.calls);
    await this.store.toolEvents.insert(this.events);
    this.calls = [];
    this.events = [];
  }

  private toolDefinitions(): ToolDefinition[] | null {
    if (this.about.tools.length === 0) return null;
    return this.about.tools.map(({ name, description, parameters }) => ({
      type: "function",
      function: { name, description, parameters: (parameters ?? {}) as { [key: string]: unknown } },
    }));
  }

  private addPrompt(turn: ImportedTurn): void {
    if (this.prompt === null) return;
    if (turn.tokens === null) this.prompt = null;
    else this.prompt.push(...turn.tokens.ids);
  }

  /** An answer's tokens: what the template put before it, what was sampled, what the template put after it. */
  private sampledTokens(answer: ImportedTurn | null): {
    prompt: Int32Array;
    output: Int32Array;
    logprobs: Float32Array;
  } {
    const none = { prompt: new Int32Array(0), output: new Int32Array(0), logprobs: new Float32Array(0) };
    if (this.prompt === null) return none;
    if (answer === null) {
      const prompt = Int32Array.from(this.prompt);
      this.prompt = [];
      return { ...none, prompt };
    }
    const { tokens } = answer;
    const first = tokens?.sampled.indexOf(1) ?? -1;
    const last = tokens?.sampled.lastIndexOf(1) ?? -1;
    if (tokens === null || first < 0 || tokens.sampled.slice(first, last + 1).includes(0)) {
      // From here on no call can say which tokens it continued.
      this.prompt = null;
      return none;
    }
    const prompt = Int32Array.from([...this.prompt, ...tokens.ids.slice(0, first)]);
    const output = Int32Array.from(tokens.ids.slice(first, last + 1));
    const logprobs = Float32Array.from(tokens.logprobs ?? output, (value) =>
      tokens.logprobs === null ? Number.NaN : value,
    );
    if (tokens.advantages !== null) this.advantages.push(...tokens.advantages.slice(0, mostAdvantages));
    this.prompt = tokens.ids.slice(last + 1);
    return { prompt, output, logprobs };
  }

  /** Times rise along the trajectory, so that calls keep their order where the file tells none. */
  /** Calls are read in the order of their starts. */
  private start(known: number | null): number {
    this.clock = Math.max(this.tick(known), this.lastStart + leastBetweenStarts);
    this.lastStart = this.clock;
    return this.clock;
  }

  private tick(known: number | null): number {
    this.clock = Math.max(this.clock, known ?? this.clock);
    return this.clock;
  }

  private record(place: { readonly task: string; readonly sample: number; readonly file: string }): RecordDocument {
    const { about } = this;
    const score = finite(about.score);
    const numbers = Object.entries(about.reward).filter(
      (entry): entry is [string, number] => typeof entry[1] === "number" && Number.isFinite(entry[1]),
    );
    const truncated = about.truncated ?? this.lastFinish === "length";
    const reward = Object.fromEntries(Object.entries(about.reward).map(([name, value]) => [name, jsonNumber(value)]));
    const imported: JsonObject = {
      format: about.format,
      file: place.file,
      id: about.id,
      record: about.record,
      task: about.task,
      group: about.group,
      model: about.model,
      split: about.split,
      step: about.step,
      exitStatus: about.exitStatus,
      score: jsonNumber(about.score),
      reward,
      error: about.error,
      truncated: about.truncated,
      branch: about.branch as JsonValue,
      started: about.started,
      ended: about.ended,
      line: about.source.line,
      member: about.source.member,
    };
    return {
      ...newRecord({
        id: this.id,
        run: this.run,
        task: place.task,
        sample: place.sample,
        split: splitOf(about.split),
        created: this.created,
      }),
      status: about.error !== null ? "failed" : score === null ? "completed" : "ready",
      score,
      reward: Object.fromEntries(numbers),
      error: about.error === null ? null : { code: "SOURCE_ERROR", message: about.error, call: null },
      stats: {
        turns: this.callCount,
        calls: this.callCount,
        promptTokens: this.parent === null ? 0 : this.parent.tokens - this.outputTokens,
        outputTokens: this.outputTokens,
        trainableTokens: this.outputTokens,
        truncated,
        toolErrors: this.toolErrors,
        driftedCalls: this.drifted ? 1 : 0,
        staleness: null,
        mismatch: null,
      },
      timings: { started: about.started, ended: about.ended, scored: null },
      labels: [...about.labels],
      fields: {
        imported,
        metadata: about.metadata,
        ...(this.advantages.length === 0 ? {} : { advantages: this.advantages.slice(0, mostAdvantages) }),
      },
    };
  }
}

function parsedOrText(text: string): JsonValue {
  try {
    return parseExact(text);
  } catch {
    return text;
  }
}

function finishOf(finish: string | null, answer: ImportedTurn): CallDocument["finishReason"] {
  if (finish === "length" || finish === "max_tokens") return "length";
  if (finish === "tool_use" || finish === "tool_calls" || answer.toolCalls.length > 0) return "tool_calls";
  return finish === null ? null : "stop";
}
