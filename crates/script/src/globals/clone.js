(function () {
  "use strict";
  const refuse = (what) => {
    throw new DOMException(`${what} cannot be cloned`, "DataCloneError");
  };
  const errors = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
  const copy = (value, known) => {
    if (typeof value === "function" || typeof value === "symbol") refuse(`a ${typeof value}`);
    if (typeof value !== "object" || value === null) return value;
    if (known.has(value)) return known.get(value);
    const keep = (made) => {
      known.set(value, made);
      return made;
    };
    if (Array.isArray(value)) {
      const made = keep(new Array(value.length));
      for (const key of Object.keys(value)) made[key] = copy(value[key], known);
      return made;
    }
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const buffer = copy(value.buffer, known);
      const length = value instanceof DataView ? value.byteLength : value.length;
      return keep(new value.constructor(buffer, value.byteOffset, length));
    }
    if (value instanceof Map) {
      const made = keep(new Map());
      for (const [key, item] of [...value]) made.set(copy(key, known), copy(item, known));
      return made;
    }
    if (value instanceof Set) {
      const made = keep(new Set());
      for (const item of [...value]) made.add(copy(item, known));
      return made;
    }
    if (value instanceof Error) {
      const made = keep(new (errors[value.name] ?? Error)(value.message));
      if ("cause" in value) made.cause = copy(value.cause, known);
      return made;
    }
    if (value instanceof Boolean || value instanceof Number || value instanceof String) {
      return keep(Object(value.valueOf()));
    }
    const tag = Object.prototype.toString.call(value);
    if (tag !== "[object Object]") refuse(tag.slice(8, -1));
    if (value instanceof WeakMap || value instanceof WeakSet || value instanceof Promise) {
      refuse("an object with hidden state");
    }
    const made = keep({});
    for (const key of Object.keys(value)) {
      const item = copy(value[key], known);
      Object.defineProperty(made, key,
        { value: item, writable: true, enumerable: true, configurable: true });
    }
    return made;
  };
  return {
    structuredClone(value, options) {
      if (options?.transfer?.length) refuse("a transferred object");
      return copy(value, new Map());
    },
  };
})
