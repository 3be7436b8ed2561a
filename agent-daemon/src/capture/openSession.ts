// Puts a session together: capture, agent, report, trajectories, and the store it is written to. This is what the scheduler
// opens for each record.
import type { Agent } from "../../../protocol/agent.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { InferenceEngine } from "../engines/interface.ts";
import type { ModelText } from "../engines/tokenizer/load.ts";
import type { BlobStore, RecordStore } from "../store/interface.ts";
import { callDocument, toolEventDocument } from "./callDocuments.ts";
import type { CapturedCall } from "./capturedCall.ts";
import { ChatTemplate } from "./chatTemplate.ts";
import { ConversationText } from "./conversationText.ts";
import { type CaptureModel, CaptureSession, type CaptureSessionOptions } from "./session.ts";
import { sessionAgent } from "./sessionAgent.ts";
import { type SessionReport, sessionReport } from "./sessionReport.ts";
import { type CapturedTrajectory, trajectoriesOf } from "./trajectories.ts";

/** Where calls are written as they end. */
export interface CaptureStore {
  readonly run: string;
  readonly records: RecordStore;
  readonly blobs: BlobStore;
}

export interface OpenSessionOptions extends Omit<CaptureSessionOptions, "onEnded"> {
  /** Agent.seed. */
  readonly agentSeed: number;
  /** What becomes of calls that were cut off by their limit. */
  readonly truncated: "keep" | "mask";
  /** null: nothing is written. */
  readonly store: CaptureStore | null;
}

export interface OpenedSession {
  readonly agent: Agent;
  /** Cancels what runs, waits until everything is on record. Errors: those of the store. */
  close(): Promise<SessionReport>;
  trajectories(): readonly CapturedTrajectory[];
  /** Everything captured so far, in the order it ended. */
  captured(): readonly CapturedCall[];
}

/** Errors: TEMPLATE_INVALID; CAPTURE_TEMPLATE_MISSING when the model has no chat template and none is given. */
export function captureModel(
  engine: InferenceEngine,
  model: ModelText,
  options: { readonly chatTemplate?: string; readonly now?: () => Date } = {},
): CaptureModel {
  const source = options.chatTemplate ?? model.chatTemplate;
  if (source === null) {
    throw new RollscopeError("CAPTURE_TEMPLATE_MISSING", `The model ${model.source} has no chat template.`, {
      next: "Put the template into chat_template.jinja in the model's folder, or use a model that brings one.",
      at: { file: model.source },
    });
  }
  const template = new ChatTemplate(source, {
    specialTokens: model.specialTokens,
    ...(options.now ? { now: options.now } : {}),
  });
  return {
    engine,
    tokenizer: model.tokenizer,
    text: new ConversationText(template),
    stopIds: model.stopIds,
    verifiedShapes: new Set(),
  };
}

export function openCaptureSession(options: OpenSessionOptions): OpenedSession {
  const { store } = options;
  const writes: Promise<void>[] = [];
  const session = new CaptureSession({
    ...options,
    onEnded: (call) => {
      if (store === null) return;
      writes.push(
        callDocument(call, store.run, store.blobs).then((document) => store.records.calls.insert([document])),
      );
      // A failed write is reported by close; until then it must not count as unhandled.
      writes.at(-1)?.catch(() => {});
    },
  });
  const { agent, toolEvents } = sessionAgent(session, options.agentSeed, options.signal, options.now);
  const trajectories = () => trajectoriesOf(session.calls, { truncated: options.truncated });
  return {
    agent,
    trajectories,
    captured: () => session.calls,
    close: async () => {
      await session.close();
      await Promise.all(writes);
      if (store !== null && toolEvents.length > 0) {
        await store.records.toolEvents.insert(
          toolEvents.map((event) => toolEventDocument(event, session.record, store.run)),
        );
      }
      return sessionReport(session.calls, toolEvents, trajectories());
    },
  };
}
