// JSON-RPC over a stream, as both ends speak it: numbers that JSON lacks travel as the words that the contract reads, and errors
// carry what a RollscopeError says.
import {
  ErrorCodes,
  type Message,
  type MessageWriter,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node.js";
import { rpcErrorDataSchema } from "../../../../protocol/daemonMethods.ts";
import { type ErrorCode, errorCodes, RollscopeError } from "../../../../protocol/errors.ts";
import { specialsAsWords } from "../../../../protocol/journal.ts";

export const createReader = (stream: NodeJS.ReadableStream) => new StreamMessageReader(stream);

export function createWriter(stream: NodeJS.WritableStream): MessageWriter {
  return new StreamMessageWriter(stream, {
    contentTypeEncoder: {
      name: "application/json",
      encode: async (message: Message) => Buffer.from(JSON.stringify(message, specialsAsWords), "utf8"),
    },
  });
}

const refused = -32_000;

/** What a client is told of an error; of one without a code it learns the sentence only. */
export function responseError(error: unknown): ResponseError<unknown> {
  if (error instanceof RollscopeError) {
    const { code, message, next, retryable, at } = error;
    const { record, call } = at;
    const number =
      code === "DAEMON_METHOD_UNKNOWN"
        ? ErrorCodes.MethodNotFound
        : code === "DAEMON_REQUEST_INVALID"
          ? ErrorCodes.InvalidParams
          : refused;
    return new ResponseError(number, message, {
      code,
      message,
      next,
      retryable,
      ...(typeof record === "string" ? { record } : {}),
      ...(typeof call === "string" ? { call } : {}),
    });
  }
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new ResponseError(refused, message, {
    code: "DAEMON_FAILED",
    message,
    next: "This is a fault of Rollscope; report it with the daemon's log.",
    retryable: false,
  });
}

/** The error that a daemon answered, as it was thrown there; any other error as it is. */
export function errorOfResponse(error: unknown): unknown {
  if (!(error instanceof ResponseError)) return error;
  const data = rpcErrorDataSchema.safeParse(error.data);
  if (!data.success) {
    if (error.code !== ErrorCodes.PendingResponseRejected) return error;
    return new RollscopeError("DAEMON_UNREACHABLE", "The connection to the daemon was closed.", {
      next: "Try again; it is opened anew.",
      cause: error,
    });
  }
  const { code, message, next, record, call } = data.data;
  if (!Object.hasOwn(errorCodes, code)) return error;
  return new RollscopeError(code as ErrorCode, message, {
    next,
    at: { ...(record === undefined ? {} : { record }), ...(call === undefined ? {} : { call }) },
  });
}
