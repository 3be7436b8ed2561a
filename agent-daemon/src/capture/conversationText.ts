// The text a template puts around answers: whole prompts, and only what a continuation adds. The added text is taken from a
// render of the conversation's beginning, its last answer and the new messages, so its cost does not grow with the turns.
import type { AssistantMessage, ChatMessage, ToolDefinition } from "../../../protocol/agent.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { ChatTemplate } from "./chatTemplate.ts";
import { templateMessage } from "./messages.ts";
import { toTemplateValue } from "./template/convert.ts";
import { writeJson } from "./template/pythonJson.ts";

export interface PromptSettings {
  readonly tools: readonly ToolDefinition[];
  readonly variables: Readonly<Record<string, unknown>>;
  /** Equal for equal tools and variables. */
  readonly key: string;
  /** Equal for equal tools. */
  readonly toolsKey: string;
}

export function promptSettings(
  tools: readonly ToolDefinition[],
  variables: Readonly<Record<string, unknown>>,
): PromptSettings {
  const toolsKey = writeJson(toTemplateValue(tools));
  return { tools, variables, toolsKey, key: `${toolsKey}${writeJson(toTemplateValue(variables), { sortKeys: true })}` };
}

export interface ContinuationRequest {
  /** Messages before the conversation's first answer. */
  readonly beginning: readonly ChatMessage[];
  readonly answer: AssistantMessage;
  /** The answer as it was sampled, special tokens included. */
  readonly sampledText: string;
  /** Text of the special token that ended it; "" when none did. */
  readonly endText: string;
  readonly added: readonly ChatMessage[];
}

export type Continuation =
  /** `text` goes right behind the sampled tokens; the template renders the answer as it was sampled. */
  | { readonly kind: "exact"; readonly text: string }
  /** The same, but the template would render the answer otherwise: from `common` characters of it on, as `rendered`. */
  | { readonly kind: "rewritten"; readonly text: string; readonly common: number; readonly rendered: string }
  /** Only a whole render can say what the prompt is. */
  | { readonly kind: "unknown" };

/** Stands for an answer whose rendering is not of interest. No template has reason to change it. */
const marker = "Rollscope0Answer0Marker";

export class ConversationText {
  private readonly template: ChatTemplate;

  constructor(template: ChatTemplate) {
    this.template = template;
  }

  /** Everything, ready for the next answer. Errors: TEMPLATE_REFUSED, TEMPLATE_FAILED. */
  whole(messages: readonly ChatMessage[], settings: PromptSettings): string {
    return this.render(messages.map(templateMessage), settings, true);
  }

  continuation(request: ContinuationRequest, settings: PromptSettings): Continuation {
    try {
      return this.byActualAnswer(request, settings) ?? this.byMarker(request, settings);
    } catch (error) {
      // A template may refuse the shortened conversation and take the whole one.
      if (error instanceof RollscopeError) return { kind: "unknown" };
      throw error;
    }
  }

  private byActualAnswer(request: ContinuationRequest, settings: PromptSettings): Continuation | undefined {
    const beginning = request.beginning.map(templateMessage);
    const history = [...beginning, templateMessage(request.answer)];
    const prompt = this.render(beginning, settings, true);
    const answered = this.render(history, settings, false);
    const next = this.render([...history, ...request.added.map(templateMessage)], settings, true);
    if (!answered.startsWith(prompt) || !next.startsWith(answered)) return undefined;
    const body = answered.slice(prompt.length);
    const added = next.slice(answered.length);
    if (body.startsWith(request.sampledText)) {
      return { kind: "exact", text: body.slice(request.sampledText.length) + added };
    }
    const ending = this.endingAfterMarker(beginning, prompt, settings);
    if (ending === undefined) return undefined;
    return { ...differing(request, body), kind: "rewritten", text: withoutEnd(ending, request.endText) + added };
  }

  private endingAfterMarker(
    beginning: readonly unknown[],
    prompt: string,
    settings: PromptSettings,
  ): string | undefined {
    const marked = this.render([...beginning, { role: "assistant", content: marker }], settings, false);
    const at = marked.lastIndexOf(marker);
    return at < 0 || !marked.startsWith(prompt) ? undefined : marked.slice(at + marker.length);
  }

  /** For templates that rewrite their history: what stands behind the answer is found behind a marker in its place. */
  private byMarker(request: ContinuationRequest, settings: PromptSettings): Continuation {
    const beginning = request.beginning.map(templateMessage);
    const added = request.added.map(templateMessage);
    const marked = this.render([...beginning, { role: "assistant", content: marker }, ...added], settings, true);
    const at = marked.lastIndexOf(marker);
    if (at < 0 || marked.indexOf(marker) !== at) return { kind: "unknown" };
    const actual = this.render([...beginning, templateMessage(request.answer), ...added], settings, true);
    const prompt = this.render(beginning, settings, true);
    const text = withoutEnd(marked.slice(at + marker.length), request.endText);
    const common = commonStart(prompt, actual);
    if (common < prompt.length) return { kind: "rewritten", text, common: 0, rendered: actual.slice(common) };
    return { ...differing(request, actual.slice(prompt.length)), kind: "rewritten", text };
  }

  private render(messages: readonly unknown[], settings: PromptSettings, addGenerationPrompt: boolean): string {
    const tools = settings.tools.length === 0 ? null : settings.tools;
    return this.template.render({ messages, tools, variables: settings.variables, addGenerationPrompt }).text;
  }
}

function differing(request: ContinuationRequest, body: string): { common: number; rendered: string } {
  const common = commonStart(request.sampledText, body);
  return { common, rendered: body.slice(common) };
}

function withoutEnd(ending: string, endText: string): string {
  return endText !== "" && ending.startsWith(endText) ? ending.slice(endText.length) : ending;
}

function commonStart(left: string, right: string): number {
  let length = 0;
  while (length < left.length && left[length] === right[length]) length++;
  return length;
}
