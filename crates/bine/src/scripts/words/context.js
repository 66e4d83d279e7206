// Pages and services, and what they know about the request.
import { answer } from "bine:internal/answers";
import * as call from "bine:internal/call";
import { frame } from "bine:internal/frame";
import { session } from "bine:internal/session";
import { TableError } from "bine:internal/tables";

const AsyncFunction = (async () => {}).constructor;

/** Changes tables in a transaction, in an async service. Runs again after a conflict. Results and
 * exceptions do not pass through the host, so they stay the same objects. */
export async function change(run) {
  if (typeof run !== "function") {
    throw new TypeError("`change` takes a function: await change(() => notes.insert({ .. }))");
  }
  let result, thrown;
  const attempt = () => {
    thrown = undefined;
    try {
      result = run();
    } catch (reason) {
      thrown = { reason };
      throw reason;
    }
    if (result instanceof Promise) {
      throw new TypeError("the function of `change` must not be async: await before it");
    }
  };
  let failure;
  try {
    failure = await call.change(attempt);
  } catch (reason) {
    throw thrown === undefined ? reason : thrown.reason;
  }
  if (failure !== undefined) throw new TableError(failure);
  return result;
}

/** Whether a page of this instance has set a title of its own. */
export const titles = { areSet: false };

/** What a page or a service knows about its request. */
class Context {
  /** The visitor who has logged in, or null. */
  get user() {
    return call.user();
  }
  /** The visitor's session. */
  get session() {
    return session;
  }
  /** The browser tab: values that other tabs do not see. */
  get frame() {
    return frame();
  }
  /** The path of the page, or of the page that calls the service. */
  get path() {
    return call.path();
  }
  /** The path of the application: empty, or as in `/board`. */
  get base() {
    return call.base;
  }
  /** The title that the page has set, or null. */
  get title() {
    return call.title();
  }
  set title(text) {
    call.setTitle(text);
    titles.areSet = true;
  }
  /** A header field of the request, or null. */
  header(name) {
    return call.header(name);
  }
}

// One object serves all requests, because the host knows for which call a function runs.
export const context = Object.freeze(new Context());

export class Page {
  constructor(render) {
    this.render = render;
  }
}

/** A page: `export default page((ctx, { name }) => <h1>{name}</h1>)`. */
export function page(render) {
  if (typeof render !== "function") {
    throw new TypeError("`page` takes the function that renders the page: page((ctx) => <h1>Hello</h1>)");
  }
  return Object.freeze(new Page(render));
}

const RUN = Symbol("run");

/** A service: `export const post = service((ctx, { text }: { text: string }) => ..)`. */
export function service(run) {
  if (typeof run !== "function") {
    throw new TypeError("`service` takes a function: service((ctx, { text }: { text: string }) => ..)");
  }
  const own = (values) => run(context, values);
  own[RUN] = { run, isAsync: run instanceof AsyncFunction };
  return own;
}

/** A service of the program in Rust. In a transaction it joins it and returns its answer; elsewhere it
 * returns a promise. */
export function rustService(path) {
  const own = (values = {}) =>
    call.isChanging()
      ? answer(call.joinService(path, values))
      : call.callService(path, values).then(answer);
  own.url = path;
  return own;
}

/** The function of a service, and whether it is async; undefined for another value. */
export const serviceOf = (value) => (typeof value === "function" ? value[RUN] : undefined);

/** Markup compiles `<Live>` into a call of the runtime, so this value is used nowhere else. */
export const Live = Symbol("Live");
