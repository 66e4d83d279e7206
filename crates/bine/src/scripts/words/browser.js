// Functions that run in the browser.
import { $captured } from "bine:internal/markup";

/** A function of the browser: its place in the module of the browser, and the values that it captures. */
class BrowserFunction {
  #json;

  constructor(json) {
    this.#json = json;
    Object.freeze(this);
  }

  static json(value) {
    return typeof value === "object" && value !== null && #json in value ? value.#json : undefined;
  }
}

/** The compiler replaces the function of the program by these arguments. */
export function browser(url, index, now, values, places) {
  if (typeof url !== "string") {
    throw new TypeError("`browser` takes one function, in this place: browser((event) => save({ id }))");
  }
  return new BrowserFunction(`[${JSON.stringify(url)},${index},${now},${$captured(values, places)}]`);
}

/** A handler that is known when the page is rendered, for its attribute. */
export function $handler(value) {
  if (value === null || value === undefined || value === false) return null;
  const json = BrowserFunction.json(value);
  if (json === undefined) {
    const what = typeof value === "function" ? "this function of the server" : "this value";
    throw new TypeError(`${what} is no handler: write the function at the element, or browser(..) around it`);
  }
  return json;
}

/** Handlers in the browser have the real one. */
export function navigate() {
  throw new TypeError("navigate(..) works in handlers of the browser: return redirect(..) from a page or a service");
}
