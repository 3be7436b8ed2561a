// Evaluates a template's syntax tree with Python's values and Jinja's scopes. It holds no state between renders and
// never touches the values it was given.
import { attributeOf, itemOf, sliceOf } from "./attributes.ts";
import { applyCheck } from "./checks.ts";
import { applyFilter } from "./filters.ts";
import { applyBinary, applyUnary } from "./operators.ts";
import { textOf } from "./pythonText.ts";
import {
  type Argument,
  type Body,
  type Call,
  checkFilter,
  type Expression,
  generationMarker,
  type Identifier,
  type Parameter,
  type Statement,
} from "./syntax.ts";
import {
  type Arguments,
  Callable,
  isDict,
  isTrue,
  iterate,
  Namespace,
  TemplateFault,
  Tuple,
  typeFault,
  typeName,
  Undefined,
  undefinedFault,
  type Value,
} from "./values.ts";

export interface RenderResult {
  readonly text: string;
  /** [start, end) of each {% generation %} stretch in UTF-16 units. */
  readonly generations: readonly (readonly [number, number])[];
}

/** Errors: TemplateFault. */
export function renderBody(body: Body, variables: ReadonlyMap<string, Value>): RenderResult {
  const root = new Output();
  const interpreter = new Interpreter(root);
  try {
    interpreter.run(body, new Scope(undefined, new Map(variables)), root);
  } catch (error) {
    if (error instanceof RangeError) throw new TemplateFault("recursion", "the template recurses too deeply");
    throw error;
  }
  return { text: root.text(), generations: interpreter.generations };
}

/** Python gives up at 1000 frames; a macro call takes several. */
const deepestMacro = 250;

class Scope {
  private readonly parent: Scope | undefined;
  private readonly names: Map<string, Value>;

  constructor(parent: Scope | undefined, names = new Map<string, Value>()) {
    this.parent = parent;
    this.names = names;
  }

  get(name: string): Value | undefined {
    const own = this.names.get(name);
    return own === undefined ? this.parent?.get(name) : own;
  }

  set(name: string, value: Value): void {
    this.names.set(name, value);
  }
}

class Output {
  length = 0;
  private readonly parts: string[] = [];

  write(text: string): void {
    this.parts.push(text);
    this.length += text.length;
  }

  text(): string {
    return this.parts.join("");
  }
}

type Flow = "break" | "continue" | undefined;

class Interpreter {
  readonly generations: [number, number][] = [];
  private readonly root: Output;
  private depth = 0;

  constructor(root: Output) {
    this.root = root;
  }

  run(body: Body, scope: Scope, out: Output): Flow {
    for (const node of body) {
      const flow = this.statement(node, scope, out);
      if (flow !== undefined) return flow;
    }
    return undefined;
  }

  private statement(node: Statement | Expression, scope: Scope, out: Output): Flow {
    switch (node.type) {
      case "If":
        return this.run(isTrue(this.value(node.test, scope)) ? node.body : node.alternate, scope, out);
      case "For":
        this.loop(node, scope, out);
        return undefined;
      case "Break":
        return "break";
      case "Continue":
        return "continue";
      case "Comment":
        return undefined;
      case "Set":
        this.assign(node.assignee, node.value ? this.value(node.value, scope) : this.capture(node.body, scope), scope);
        return undefined;
      case "Macro":
        scope.set(node.name.value, this.macro(node.name.value, node.args, node.body, scope));
        return undefined;
      case "CallStatement":
        this.callBlock(node, scope, out);
        return undefined;
      case "FilterStatement":
        out.write(textOf(this.filter(node.filter, this.capture(node.body, scope), scope)));
        return undefined;
      default:
        out.write(textOf(this.value(node, scope)));
        return undefined;
    }
  }

  private capture(body: Body, scope: Scope): string {
    const out = new Output();
    this.run(body, new Scope(scope), out);
    return out.text();
  }

  private loop(node: Statement & { type: "For" }, scope: Scope, out: Output): void {
    const select = node.iterable.type === "SelectExpression" ? node.iterable : undefined;
    const source = iterate(this.value(select ? select.lhs : node.iterable, scope));
    const items: Value[] = [];
    for (const item of source) {
      if (select) {
        const inner = new Scope(scope);
        this.assign(node.loopvar, item, inner);
        if (!isTrue(this.value(select.test, inner))) continue;
      }
      items.push(item);
    }
    for (const [index, item] of items.entries()) {
      const inner = new Scope(scope);
      inner.set("loop", loopVariable(items, index));
      this.assign(node.loopvar, item, inner);
      if (this.run(node.body, inner, out) === "break") break;
    }
    if (items.length === 0) this.run(node.defaultBlock, new Scope(scope), out);
  }

  private assign(target: Expression, value: Value, scope: Scope): void {
    if (target.type === "Identifier") {
      scope.set(target.value, value);
      return;
    }
    if (target.type === "TupleLiteral") {
      const items = [...iterate(value)];
      if (items.length !== target.value.length) {
        throw typeFault(`expected ${target.value.length} values to unpack, got ${items.length}`);
      }
      for (const [index, part] of target.value.entries()) this.assign(part, items[index] ?? null, scope);
      return;
    }
    if (target.type === "MemberExpression" && target.property.type === "Identifier" && !target.computed) {
      const object = this.value(target.object, scope);
      if (!(object instanceof Namespace)) throw typeFault("cannot assign attribute on non-namespace object");
      object.attributes.set(target.property.value, value);
      return;
    }
    throw typeFault("this cannot be assigned to");
  }

  private callBlock(node: Statement & { type: "CallStatement" }, scope: Scope, out: Output): void {
    const isGeneration = node.call.callee.type === "Identifier" && node.call.callee.value === generationMarker;
    if (isGeneration) {
      const start = out.length;
      out.write(this.capture(node.body, scope));
      // A stretch inside a macro or a captured block has no place of its own in the text.
      if (out === this.root) this.generations.push([start, out.length]);
      return;
    }
    const caller = this.macro("caller", node.callerArgs ?? [], node.body, scope);
    const args = this.args(node.call.args, scope);
    const named = new Map(args.named).set("caller", caller);
    out.write(textOf(this.call(this.value(node.call.callee, scope), { positional: args.positional, named })));
  }

  /** Macros see the scope they were written in, as it is when they run. */
  private macro(name: string, parameters: readonly Parameter[], body: Body, defined: Scope): Callable {
    return new Callable(name, (args) => {
      const scope = new Scope(defined);
      const named = new Map(args.named);
      const defaults: [string, Expression][] = [];
      parameters.forEach((parameter, index) => {
        const key = parameter.type === "Identifier" ? parameter.value : parameter.key.value;
        const given = index < args.positional.length ? args.positional[index] : named.get(key);
        if (index >= args.positional.length) named.delete(key);
        scope.set(key, found(given, `parameter '${key}' was not provided`));
        if (given === undefined && parameter.type !== "Identifier") defaults.push([key, parameter.value]);
      });
      for (const [key, value] of defaults) scope.set(key, this.value(value, scope));
      scope.set("caller", found(named.get("caller"), "No caller defined"));
      named.delete("caller");
      const takesMore = mentions(body, "kwargs");
      if (!takesMore && named.size > 0)
        throw typeFault(`macro '${name}' takes no keyword argument '${[...named.keys()][0]}'`);
      if (!mentions(body, "varargs") && args.positional.length > parameters.length) {
        throw typeFault(`macro '${name}' takes not more than ${parameters.length} argument(s)`);
      }
      scope.set("kwargs", named);
      scope.set("varargs", new Tuple(args.positional.slice(parameters.length)));
      if (++this.depth > deepestMacro) {
        throw new TemplateFault("recursion", `macro '${name}' calls itself more than ${deepestMacro} times`);
      }
      const out = new Output();
      this.run(body, scope, out);
      this.depth--;
      return out.text();
    });
  }

  private value(node: Expression, scope: Scope): Value {
    switch (node.type) {
      case "IntegerLiteral":
        return BigInt(node.value);
      case "FloatLiteral":
      case "StringLiteral":
        return node.value;
      case "ArrayLiteral":
        return node.value.map((item) => this.value(item, scope));
      case "TupleLiteral":
        return new Tuple(node.value.map((item) => this.value(item, scope)));
      case "ObjectLiteral":
        return new Map(
          Array.from(node.value, ([key, item]): [Value, Value] => [this.value(key, scope), this.value(item, scope)]),
        );
      case "Identifier":
        return this.variable(node.value, scope);
      case "MemberExpression":
        return this.member(node, scope);
      case "CallExpression":
        return this.call(this.value(node.callee, scope), this.args(node.args, scope));
      case "UnaryExpression":
        return applyUnary(node.operator.value, this.value(node.argument, scope));
      case "BinaryExpression": {
        const left = this.value(node.left, scope);
        const operator = node.operator.value;
        if (operator === "and") return isTrue(left) ? this.value(node.right, scope) : left;
        if (operator === "or") return isTrue(left) ? left : this.value(node.right, scope);
        return applyBinary(operator, left, this.value(node.right, scope));
      }
      case "FilterExpression":
        return this.filter(node.filter, this.value(node.operand, scope), scope);
      case "TestExpression":
        return (
          applyCheck(node.test.value, this.value(node.operand, scope), { positional: [], named: new Map() }) !==
          node.negate
        );
      case "SelectExpression":
        return isTrue(this.value(node.test, scope))
          ? this.value(node.lhs, scope)
          : new Undefined("the inline if-expression evaluated to false and no else section was defined.");
      case "Ternary":
        return this.value(isTrue(this.value(node.condition, scope)) ? node.trueExpr : node.falseExpr, scope);
      default:
        throw typeFault(`the expression ${(node as { type: string }).type} is not supported`);
    }
  }

  private variable(name: string, scope: Scope): Value {
    switch (name) {
      case "true":
      case "True":
        return true;
      case "false":
      case "False":
        return false;
      case "none":
      case "None":
        return null;
      default:
        return found(scope.get(name), `'${name}' is undefined`);
    }
  }

  private member(node: Expression & { type: "MemberExpression" }, scope: Scope): Value {
    const object = this.value(node.object, scope);
    const { property } = node;
    if (property.type === "SliceExpression") {
      const part = (bound: Expression | undefined): Value => (bound ? this.value(bound, scope) : null);
      return sliceOf(object, part(property.start), part(property.stop), part(property.step));
    }
    if (!node.computed && property.type === "Identifier") return attributeOf(object, property.value);
    return itemOf(object, this.value(property, scope));
  }

  private filter(filter: Identifier | Call, value: Value, scope: Scope): Value {
    const name = filter.type === "Identifier" ? filter.value : (filter.callee as Identifier).value;
    const args = filter.type === "Identifier" ? { positional: [], named: new Map() } : this.args(filter.args, scope);
    if (!name.startsWith(checkFilter)) return applyFilter(name, value, args);
    const check = name.slice(checkFilter.length);
    return check.startsWith("not ") ? !applyCheck(check.slice(4), value, args) : applyCheck(check, value, args);
  }

  private call(callee: Value, args: Arguments): Value {
    if (callee instanceof Callable) return callee.call(args);
    if (callee instanceof Undefined) throw undefinedFault(callee);
    throw typeFault(`'${typeName(callee)}' object is not callable`);
  }

  private args(nodes: readonly Argument[], scope: Scope): Arguments {
    const positional: Value[] = [];
    const named = new Map<string, Value>();
    for (const node of nodes) {
      if (node.type === "KeywordArgumentExpression") named.set(node.key.value, this.value(node.value, scope));
      else if (node.type === "SpreadExpression") positional.push(...iterate(this.value(node.argument, scope)));
      else if (node.type === "KeywordSpreadExpression") {
        const more = this.value(node.argument, scope);
        if (!isDict(more)) throw typeFault("argument after ** must be a mapping");
        for (const [key, value] of more) named.set(textOf(key), value);
      } else positional.push(this.value(node, scope));
    }
    return { positional, named };
  }
}

function found(value: Value | undefined, hint: string): Value {
  return value === undefined ? new Undefined(hint) : value;
}

function loopVariable(items: readonly Value[], index: number): Namespace {
  const loop = new Namespace();
  const count = items.length;
  const none = (which: string): Undefined => new Undefined(`there is no ${which} item`);
  const cycle = (args: Arguments): Value =>
    args.positional[index % Math.max(args.positional.length, 1)] ?? none("cycle");
  const values: Record<string, Value> = {
    index: BigInt(index + 1),
    index0: BigInt(index),
    revindex: BigInt(count - index),
    revindex0: BigInt(count - index - 1),
    first: index === 0,
    last: index === count - 1,
    length: BigInt(count),
    depth: 1n,
    depth0: 0n,
    previtem: items[index - 1] ?? (index > 0 ? null : none("previous")),
    nextitem: items[index + 1] ?? (index < count - 1 ? null : none("next")),
    cycle: new Callable("cycle", cycle),
  };
  for (const [name, value] of Object.entries(values)) loop.attributes.set(name, value);
  return loop;
}

/** Whether a body names a variable anywhere: Jinja gives a macro `varargs` and `kwargs` only then. */
function mentions(node: unknown, name: string): boolean {
  if (Array.isArray(node)) return node.some((item) => mentions(item, name));
  if (node instanceof Map) return [...node].some((entry) => mentions(entry, name));
  if (typeof node !== "object" || node === null) return false;
  const { type, value } = node as { type?: string; value?: unknown };
  return (type === "Identifier" && value === name) || Object.values(node).some((part) => mentions(part, name));
}
