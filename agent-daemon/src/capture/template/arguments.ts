// Reads the arguments of a call the way a Python signature would: by position or by name, nothing left over.
import { type Arguments, typeFault, typeName, type Value } from "./values.ts";

export class ArgumentReader {
  private readonly owner: string;
  private readonly args: Arguments;
  private readonly used = new Set<string>();
  private next = 0;

  constructor(owner: string, args: Arguments) {
    this.owner = owner;
    this.args = args;
  }

  /** The next parameter, called `name`; undefined when the caller gave none. */
  optional(name: string): Value | undefined {
    const named = this.args.named.get(name);
    if (this.next < this.args.positional.length) {
      if (named !== undefined) throw typeFault(`${this.owner}() got multiple values for argument '${name}'`);
      return this.args.positional[this.next++];
    }
    if (named !== undefined) this.used.add(name);
    return named;
  }

  /** None stays None: only an absent argument takes the default. */
  withDefault(name: string, fallback: Value): Value {
    const value = this.optional(name);
    return value === undefined ? fallback : value;
  }

  required(name: string): Value {
    const value = this.optional(name);
    if (value === undefined) throw typeFault(`${this.owner}() missing required argument: '${name}'`);
    return value;
  }

  text(name: string): string {
    return asText(this.owner, name, this.required(name));
  }

  /** None and absent are the same. */
  optionalText(name: string): string | undefined {
    const value = this.optional(name);
    return value === undefined || value === null ? undefined : asText(this.owner, name, value);
  }

  /** None and absent are the same. */
  optionalInteger(name: string): number | undefined {
    const value = this.optional(name);
    if (value === undefined || value === null) return undefined;
    if (typeof value === "boolean") return value ? 1 : 0;
    if (typeof value === "bigint") return Number(value);
    throw typeFault(`${this.owner}() argument '${name}' must be int, not ${typeName(value)}`);
  }

  end(): void {
    if (this.next < this.args.positional.length) throw typeFault(`${this.owner}() takes ${this.next} arguments`);
    for (const name of this.args.named.keys()) {
      if (!this.used.has(name)) throw typeFault(`${this.owner}() got an unexpected keyword argument '${name}'`);
    }
  }
}

function asText(owner: string, name: string, value: Value): string {
  if (typeof value === "string") return value;
  throw typeFault(`${owner}() argument '${name}' must be str, not ${typeName(value)}`);
}
