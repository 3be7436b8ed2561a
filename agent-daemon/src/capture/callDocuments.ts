// Captured calls and tool events as documents of the store. What is written is what was captured, number for number.
import type { CallDocument } from "../../../protocol/call.ts";
import type { Column } from "../../../protocol/column.ts";
import type { RollscopeError } from "../../../protocol/errors.ts";
import type { DocumentError, ToolEventDocument } from "../../../protocol/record.ts";
import { encodeColumns } from "../store/columns.ts";
import type { BlobStore } from "../store/interface.ts";
import type { CapturedCall } from "./capturedCall.ts";
import type { ToolEvent } from "./sessionAgent.ts";

/** Errors: those of the blob store. */
export async function callDocument(call: CapturedCall, run: string, blobs: BlobStore): Promise<CallDocument> {
  const arrays = [call.promptDelta, call.output, call.logprobs];
  const columns = await encodeColumns(blobs, call.sampledLogprobs ? [...arrays, call.sampledLogprobs] : arrays);
  const [promptDelta, output, logprobs, sampledLogprobs] = columns as [Column, Column, Column, Column?];
  const error = call.error === null ? null : documentError(call.error, call.id);
  return {
    id: call.id,
    run,
    record: call.record,
    parent: call.parent?.id ?? null,
    index: call.index,
    status: call.status,
    tries: [{ started: call.started, ended: call.ended, error }],
    client: call.client,
    dialect: call.dialect,
    keptMessages: call.keptMessages,
    keptTokens: call.keptTokens,
    request: {
      messages: [...call.messages],
      tools: call.tools === null ? null : [...call.tools],
      asked: { ...call.asked },
    },
    promptDelta,
    output,
    logprobs,
    sampledLogprobs: sampledLogprobs ?? null,
    temperature: call.temperature,
    versions: [...call.versions],
    routing: null,
    message: call.message,
    finishReason: call.finishReason,
    usage: call.usage,
    error,
    drift: call.drift,
    started: call.started,
    firstToken: call.firstToken,
    ended: call.ended,
  };
}

export function toolEventDocument(event: ToolEvent, record: string, run: string): ToolEventDocument {
  return {
    id: `${record}-t${event.index}`,
    run,
    record,
    index: event.index,
    call: event.call,
    name: event.name,
    arguments: event.arguments,
    result: event.result,
    error: event.error === undefined ? null : { code: "TOOL_FAILED", message: event.error, call: event.call },
    started: event.started,
    durationMs: event.milliseconds,
  };
}

function documentError(error: RollscopeError, call: string): DocumentError {
  return { code: error.code, message: `${error.message} ${error.next}`, call };
}
