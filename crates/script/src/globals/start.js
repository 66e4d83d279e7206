(function (native) {
  "use strict";
  const { defineProperty, freeze } = Object;
  const { apply } = Reflect;
  const { then } = Promise.prototype;
  const { settled, part } = native;
  const define = (object, name, value) =>
    defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });

  // Names that are compiled at their first use.
  const loaded = { __proto__: null };
  const load = (file) => (loaded[file] ??= part(file)(native));
  const lazy = (file, ...names) => {
    for (const name of names) {
      defineProperty(globalThis, name, {
        configurable: true,
        enumerable: false,
        get() {
          const value = load(file)[name];
          define(globalThis, name, value);
          return value;
        },
        set(value) {
          define(globalThis, name, value);
        },
      });
    }
  };
  lazy("url", "URL", "URLSearchParams");
  lazy("encoding", "TextEncoder", "TextDecoder", "atob", "btoa");
  lazy("clone", "structuredClone");
  lazy("abort", "EventTarget", "Event", "AbortController", "AbortSignal");

  const { log } = native;
  const console = {};
  for (const [name, level] of [["debug", 0], ["log", 1], ["info", 1], ["warn", 2], ["error", 3]]) {
    define(console, name, (...values) => log(level, ...values));
  }
  define(console, "assert", (condition, ...values) => {
    if (!condition) log(3, "assertion failed:", ...values);
  });
  define(globalThis, "console", console);

  define(globalThis, "setTimeout", native.setTimeout);
  define(globalThis, "setInterval", native.setInterval);
  define(globalThis, "clearTimeout", native.clearTimer);
  define(globalThis, "clearInterval", native.clearTimer);

  const { now, random } = native;
  const start = now();
  define(globalThis, "performance", freeze({ now: () => now() - start }));
  const Bytes = Uint8Array;
  define(globalThis, "crypto", freeze({
    getRandomValues(array) {
      if (!ArrayBuffer.isView(array) || array instanceof DataView || array instanceof Float32Array
          || array instanceof Float64Array) {
        throw new TypeError("getRandomValues() takes an array of integers");
      }
      random(new Bytes(array.buffer, array.byteOffset, array.byteLength));
      return array;
    },
    randomUUID() {
      const bytes = random(new Bytes(16));
      bytes[6] = (bytes[6] & 15) | 64;
      bytes[8] = (bytes[8] & 63) | 128;
      let text = "";
      for (let index = 0; index < 16; index++) {
        if (index === 4 || index === 6 || index === 8 || index === 10) text += "-";
        text += (bytes[index] + 256).toString(16).slice(1);
      }
      return text;
    },
  }));

  const { markup, markupText } = native;
  define(markup, "toString", function () {
    return markupText(this);
  });
  freeze(markup);

  return (promise, key, isModule) => {
    apply(then, promise, [
      (value) => settled(key, true, value, isModule),
      (reason) => settled(key, false, reason),
    ]);
  };
})
