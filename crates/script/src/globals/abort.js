(function () {
  "use strict";
  class Event {
    constructor(type) {
      this.type = `${type}`;
      this.target = null;
    }
  }
  class EventTarget {
    #listeners = new Map();
    addEventListener(type, listener, options) {
      const list = this.#listeners.get(type) ?? [];
      this.#listeners.set(type, list);
      if (listener && !list.some((known) => known.listener === listener)) {
        list.push({ listener, once: !!options?.once });
      }
    }
    removeEventListener(type, listener) {
      const list = this.#listeners.get(type) ?? [];
      this.#listeners.set(type, list.filter((known) => known.listener !== listener));
    }
    dispatchEvent(event) {
      event.target = this;
      for (const { listener, once } of [...(this.#listeners.get(event.type) ?? [])]) {
        if (once) this.removeEventListener(event.type, listener);
        try {
          if (typeof listener === "function") listener.call(this, event);
          else listener.handleEvent(event);
        } catch (error) {
          console.error(error);
        }
      }
      return true;
    }
  }
  const key = Symbol();
  class AbortSignal extends EventTarget {
    #reason = undefined;
    #aborted = false;
    onabort = null;
    constructor(given) {
      if (given !== key) throw new TypeError("use an AbortController");
      super();
    }
    get aborted() {
      return this.#aborted;
    }
    get reason() {
      return this.#reason;
    }
    throwIfAborted() {
      if (this.#aborted) throw this.#reason;
    }
    [key](reason = new DOMException("the operation was aborted", "AbortError")) {
      if (this.#aborted) return;
      this.#aborted = true;
      this.#reason = reason;
      const event = new Event("abort");
      this.dispatchEvent(event);
      if (typeof this.onabort === "function") this.onabort(event);
    }
    static abort(reason) {
      const signal = new AbortSignal(key);
      signal[key](reason);
      return signal;
    }
    static timeout(delay) {
      const signal = new AbortSignal(key);
      const timeout = () => new DOMException("the operation has timed out", "TimeoutError");
      setTimeout(() => signal[key](timeout()), delay);
      return signal;
    }
    static any(signals) {
      const all = new AbortSignal(key);
      for (const signal of signals) {
        if (signal.aborted) return AbortSignal.abort(signal.reason);
        signal.addEventListener("abort", () => all[key](signal.reason), { once: true });
      }
      return all;
    }
  }
  class AbortController {
    #signal = new AbortSignal(key);
    get signal() {
      return this.#signal;
    }
    abort(reason) {
      this.#signal[key](reason);
    }
  }
  return { Event, EventTarget, AbortController, AbortSignal };
})
