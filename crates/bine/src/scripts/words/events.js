// Events: messages to the open pages of this moment, which are not stored; and who has a page open.
import { answer } from "bine:internal/answers";
import { declare, listeners, names, people, send, tabs } from "bine:internal/events-host";

function textOf(data) {
  const text = data === undefined ? "null" : JSON.stringify(data);
  if (text === undefined) throw new TypeError(`an event has a value that JSON can hold, not a ${typeof data}`);
  return text;
}

/** An event of the application. */
class Event {
  #slot;
  #name;

  constructor({ slot, name }) {
    this.#slot = slot;
    this.#name = name;
    Object.freeze(this);
  }

  get name() { return this.#name; }
  broadcast(data) { answer(send(this.#slot, false, textOf(data))); }
  notifyOne(data) { return answer(send(this.#slot, true, textOf(data))) ?? undefined; }
  listeners() { return listeners(this.#slot); }

  /** Handlers in the browser have the real one. */
  on() {
    throw new TypeError("`on` of an event works in handlers of the browser: onappear={() => bell.on(..)}");
  }
}

export const event = (name, options) => new Event(declare(name, options ?? null));

export const presence = Object.freeze({ people, tabs, names });
