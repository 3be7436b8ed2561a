// All conversations of a session as one tree of messages: finds the call whose conversation a request repeats, and what stood
// where the request says something else. It knows messages by their keys only.
import { type CapturedCall, messageCount } from "./capturedCall.ts";

interface Place {
  readonly children: Map<string, Place>;
  /** Calls whose answer is the message at this place, in the order they ended. */
  readonly answers: CapturedCall[];
  /** The last call that ended at or below this place. */
  latest: CapturedCall | null;
}

export interface TreeMatch {
  /** The deepest call all of whose conversation the request begins with. */
  readonly call: CapturedCall | null;
  /** Messages that the request has in common with any earlier conversation. */
  readonly matched: number;
  /** The last call that went on otherwise from there; null when nothing did, or the request ends there. */
  readonly divergedFrom: CapturedCall | null;
  /** The request says otherwise where an answer stands, or repeats an answer further on. */
  readonly rewritesAnswer: boolean;
}

export class MessageTree {
  private readonly root: Place = newPlace();
  private readonly answerKeys = new Set<string>();
  private newest: CapturedCall | null = null;

  /** The last call that ended. */
  get latest(): CapturedCall | null {
    return this.newest;
  }

  match(keys: readonly string[]): TreeMatch {
    let place = this.root;
    let matched = 0;
    let call: CapturedCall | null = null;
    for (const key of keys) {
      const next = place.children.get(key);
      if (!next) break;
      place = next;
      matched++;
      call = place.answers.at(-1) ?? call;
    }
    const diverges = matched < keys.length && place.children.size > 0;
    const answered = [...place.children.values()].some((child) => child.answers.length > 0);
    const rest = keys.slice(matched);
    const rewritesAnswer =
      diverges && ((answered && isAssistantKey(keys[matched] ?? "")) || rest.some((key) => this.answerKeys.has(key)));
    return { call, matched, divergedFrom: diverges ? place.latest : null, rewritesAnswer };
  }

  /** `keys`: those of the request, then that of the answer. */
  add(call: CapturedCall, keys: readonly string[]): void {
    if (keys.length !== messageCount(call)) throw new Error("a call has as many keys as messages");
    let place = this.root;
    place.latest = call;
    for (const key of keys) {
      let next = place.children.get(key);
      if (!next) {
        next = newPlace();
        place.children.set(key, next);
      }
      place = next;
      place.latest = call;
    }
    place.answers.push(call);
    this.answerKeys.add(keys.at(-1) ?? "");
    this.newest = call;
  }
}

function newPlace(): Place {
  return { children: new Map(), answers: [], latest: null };
}

function isAssistantKey(key: string): boolean {
  return key.startsWith('["assistant"');
}
