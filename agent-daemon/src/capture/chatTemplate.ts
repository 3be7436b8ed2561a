// A model's chat template: conversation in, exact text out, the way the model was trained to see it. The prompt text is
// decided here alone; it must never tokenise and never look at anything but its arguments.
import { type ErrorCode, RollscopeError } from "../../../protocol/errors.ts";
import { toTemplateValue } from "./template/convert.ts";
import { templateGlobals } from "./template/globals.ts";
import { renderBody } from "./template/interpreter.ts";
import { type Body, parseTemplate } from "./template/syntax.ts";
import { type Dict, type FaultKind, isDict, isList, TemplateFault, type Value } from "./template/values.ts";

/** A conversation as plain data or as values of `parseJson`, which keep number text and key order. */
export interface RenderRequest {
  readonly messages: readonly unknown[];
  /** null: the template sees no tools. */
  readonly tools?: readonly unknown[] | null;
  /** More variables, such as enable_thinking. */
  readonly variables?: Readonly<Record<string, unknown>> | Dict;
  readonly addGenerationPrompt: boolean;
  /** "drop" (default): message keys that are null are removed first, as transformers does. */
  readonly nullPolicy?: "drop" | "keep";
}

export interface Rendered {
  readonly text: string;
  /** [start, end) of each stretch the template marks as the model's own, in UTF-16 units; empty when it marks none. */
  readonly generations: readonly (readonly [number, number])[];
}

export interface ChatTemplateOptions {
  /** bos_token, eos_token, ... */
  readonly specialTokens?: Readonly<Record<string, string>>;
  readonly now?: () => Date;
}

const codeOf: Readonly<Record<FaultKind, ErrorCode>> = {
  raised_by_template: "TEMPLATE_REFUSED",
  undefined_value: "TEMPLATE_FAILED",
  runtime_type: "TEMPLATE_FAILED",
  recursion: "TEMPLATE_FAILED",
};

export class ChatTemplate {
  readonly source: string;
  private readonly body: Body;
  private readonly base: ReadonlyMap<string, Value>;

  /** Errors: TEMPLATE_INVALID when the source cannot be parsed. */
  constructor(source: string, options: ChatTemplateOptions = {}) {
    this.source = source;
    try {
      this.body = parseTemplate(source);
    } catch (cause) {
      throw new RollscopeError("TEMPLATE_INVALID", `The chat template cannot be read: ${messageOf(cause)}`, {
        next: "Correct chat_template.jinja in the model's folder, or use another model.",
        cause,
      });
    }
    const tokens = Object.entries(options.specialTokens ?? {});
    this.base = new Map<string, Value>([...templateGlobals(options.now ?? (() => new Date())), ...tokens]);
  }

  /**
   * Errors: TEMPLATE_REFUSED when the template itself raises (such as roles that do not alternate), TEMPLATE_FAILED when it
   * computes something Python would refuse. `at.kind` has the reference's name for the failure.
   */
  render(request: RenderRequest): Rendered {
    try {
      const variables = new Map(this.base);
      variables.set("messages", prepared(request.messages, request.nullPolicy ?? "drop"));
      variables.set("tools", toTemplateValue(request.tools ?? null));
      variables.set("documents", null);
      variables.set("add_generation_prompt", request.addGenerationPrompt);
      const more = toTemplateValue(request.variables ?? {});
      if (isDict(more)) for (const [name, value] of more) variables.set(String(name), value);
      return renderBody(this.body, variables);
    } catch (cause) {
      if (!(cause instanceof TemplateFault)) throw cause;
      throw new RollscopeError(
        codeOf[cause.kind],
        `The chat template cannot render this conversation: ${cause.message}`,
        {
          next: "Change the messages to what the template takes, or put another chat_template.jinja into the model's folder.",
          at: { kind: cause.kind },
          cause,
        },
      );
    }
  }
}

/** Nulls dropped and reasoning offered under both of its names, as the reference does before it renders. */
function prepared(messages: readonly unknown[], nullPolicy: "drop" | "keep"): Value {
  const values = toTemplateValue(messages);
  if (!isList(values)) return values;
  return values.map((message) => {
    if (!isDict(message)) return message;
    const result = new Map(message);
    if (nullPolicy === "drop") for (const [key, value] of message) if (value === null) result.delete(key);
    const reasoning = result.get("reasoning_content");
    if (reasoning !== undefined && !result.has("thinking")) result.set("thinking", reasoning);
    return result;
  });
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
