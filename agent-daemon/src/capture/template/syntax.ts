// Template source to syntax tree. Lexer and parser are the library's; here the source is first brought to what they expect:
// line ends of the reference, {% generation %} as a call block, tests with arguments as filters. Nothing is evaluated here.
import { parse, tokenize } from "@huggingface/jinja";
import { isCheck } from "./checks.ts";
import { isFilter } from "./filters.ts";

export type Expression =
  | { readonly type: "IntegerLiteral"; readonly value: number }
  | { readonly type: "FloatLiteral"; readonly value: number }
  | { readonly type: "StringLiteral"; readonly value: string }
  | { readonly type: "ArrayLiteral"; readonly value: readonly Expression[] }
  | { readonly type: "TupleLiteral"; readonly value: readonly Expression[] }
  | { readonly type: "ObjectLiteral"; readonly value: ReadonlyMap<Expression, Expression> }
  | Identifier
  | {
      readonly type: "MemberExpression";
      readonly object: Expression;
      readonly property: Property;
      readonly computed: boolean;
    }
  | Call
  | { readonly type: "UnaryExpression"; readonly operator: Operator; readonly argument: Expression }
  | {
      readonly type: "BinaryExpression";
      readonly operator: Operator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | { readonly type: "FilterExpression"; readonly operand: Expression; readonly filter: Identifier | Call }
  | {
      readonly type: "TestExpression";
      readonly operand: Expression;
      readonly negate: boolean;
      readonly test: Identifier;
    }
  | { readonly type: "SelectExpression"; readonly lhs: Expression; readonly test: Expression }
  | {
      readonly type: "Ternary";
      readonly condition: Expression;
      readonly trueExpr: Expression;
      readonly falseExpr: Expression;
    };

export interface Identifier {
  readonly type: "Identifier";
  readonly value: string;
}

export interface Call {
  readonly type: "CallExpression";
  readonly callee: Expression;
  readonly args: readonly Argument[];
}

export interface Slice {
  readonly type: "SliceExpression";
  readonly start?: Expression;
  readonly stop?: Expression;
  readonly step?: Expression;
}

export type Property = Expression | Slice;

export type Argument =
  | Expression
  | { readonly type: "KeywordArgumentExpression"; readonly key: Identifier; readonly value: Expression }
  | { readonly type: "SpreadExpression"; readonly argument: Expression }
  | { readonly type: "KeywordSpreadExpression"; readonly argument: Expression };

export type Parameter =
  | Identifier
  | { readonly type: "KeywordArgumentExpression"; readonly key: Identifier; readonly value: Expression };

export type Statement =
  | { readonly type: "If"; readonly test: Expression; readonly body: Body; readonly alternate: Body }
  | {
      readonly type: "For";
      readonly loopvar: Expression;
      readonly iterable: Expression;
      readonly body: Body;
      readonly defaultBlock: Body;
    }
  | { readonly type: "Break" }
  | { readonly type: "Continue" }
  | { readonly type: "Comment" }
  | { readonly type: "Set"; readonly assignee: Expression; readonly value: Expression | null; readonly body: Body }
  | { readonly type: "Macro"; readonly name: Identifier; readonly args: readonly Parameter[]; readonly body: Body }
  | {
      readonly type: "CallStatement";
      readonly call: Call;
      readonly callerArgs: readonly Parameter[] | null;
      readonly body: Body;
    }
  | { readonly type: "FilterStatement"; readonly filter: Identifier | Call; readonly body: Body };

export type Body = readonly (Statement | Expression)[];

interface Operator {
  readonly value: string;
}

/** The call block that {% generation %} becomes. */
export const generationMarker = "__generation__";

/** Prefix of the filters that tests with arguments become. */
export const checkFilter = "is ";

/** Throws what the parser throws, and SyntaxError for a filter or test nobody has: templates fail when read, not later. */
export function parseTemplate(source: string): Body {
  const lines = source.replace(/\r\n?/g, "\n");
  const marked = lines.replace(/\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}/g, (_, before, end, after) =>
    end ? `{%${before} endcall ${after}%}` : `{%${before} call ${generationMarker}() ${after}%}`,
  );
  const tokens = tokenize(marked, { lstrip_blocks: true, trim_blocks: true });
  const body = parse(testsWithArguments(tokens)).body as unknown as Body;
  checkNames(body);
  return body;
}

type Tokens = ReturnType<typeof tokenize>;

const operandStarts: ReadonlySet<string> = new Set([
  "StringLiteral",
  "NumericLiteral",
  "Identifier",
  "OpenSquareBracket",
]);
const notOperands: ReadonlySet<string> = new Set(["else", "or", "and", "is", "not", "if", "in", "recursive"]);

/** `x is name(args)` and `x is name arg`, which the parser does not read, become the filter `x | is name(args)`. */
function testsWithArguments(tokens: Tokens): Tokens {
  const result: Tokens = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]!;
    const negated = isWord(tokens[at + 1], "not");
    const name = tokens[at + (negated ? 2 : 1)];
    const next = tokens[at + (negated ? 3 : 2)];
    const opens = next?.type === "OpenParen";
    const bare = next !== undefined && operandStarts.has(next.type) && !notOperands.has(next.value);
    if (!isWord(token, "is") || name?.type !== "Identifier" || !(opens || bare)) {
      result.push(token);
      continue;
    }
    const make = (value: string, type: Tokens[number]["type"]): Tokens[number] => ({ ...token, value, type });
    result.push(make("|", "Pipe"), make(`${checkFilter}${negated ? "not " : ""}${name.value}`, "Identifier"));
    at += negated ? 2 : 1;
    if (bare) {
      const end = next.type === "OpenSquareBracket" ? closingBracket(tokens, at + 1) : at + 1;
      result.push(make("(", "OpenParen"), ...tokens.slice(at + 1, end + 1), make(")", "CloseParen"));
      at = end;
    }
  }
  return result;
}

function closingBracket(tokens: Tokens, open: number): number {
  let depth = 0;
  for (let at = open; at < tokens.length; at++) {
    if (tokens[at]?.type === "OpenSquareBracket") depth++;
    if (tokens[at]?.type === "CloseSquareBracket" && --depth === 0) return at;
  }
  throw new SyntaxError("Missing closing bracket.");
}

function isWord(token: Tokens[number] | undefined, word: string): boolean {
  return token?.type === "Identifier" && token.value === word;
}

/** Walks any part of the tree, whatever its shape. */
function checkNames(node: unknown): void {
  if (Array.isArray(node)) {
    for (const item of node) checkNames(item);
    return;
  }
  if (node instanceof Map) {
    for (const [key, value] of node) {
      checkNames(key);
      checkNames(value);
    }
    return;
  }
  if (typeof node !== "object" || node === null) return;
  const { type, filter, test } = node as { type?: string; filter?: Identifier | Call; test?: unknown };
  if (filter && (type === "FilterExpression" || type === "FilterStatement")) {
    const name = filter.type === "Identifier" ? filter.value : (filter.callee as Identifier).value;
    if (name.startsWith(checkFilter)) requireCheck(name.slice(checkFilter.length).replace(/^not /, ""));
    else if (!isFilter(name)) throw new SyntaxError(`No filter named '${name}'.`);
  }
  if (type === "TestExpression") requireCheck((test as Identifier).value);
  for (const value of Object.values(node)) checkNames(value);
}

function requireCheck(name: string): void {
  if (!isCheck(name)) throw new SyntaxError(`No test named '${name}'.`);
}
