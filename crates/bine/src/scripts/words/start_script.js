// What a start script declares: access rules, groups, filters and a scheduler.
import * as host from "bine:internal/start-host";

const AsyncFunction = (async () => {}).constructor;
const MAX_FILTERS = 100;
const filters = [];
let policy = null;
let isLoading = true;

Object.defineProperty(globalThis, "fetch", {
  configurable: true,
  writable: true,
  value: () => {
    throw new TypeError("start.ts has no `fetch`: a filter and a scheduler must not wait");
  },
});

const declare = (word) => {
  if (!isLoading) throw new Error(`\`${word}\` is for the time while start.ts loads: call it outside of functions`);
};

const check = (options, known, word) => {
  if (typeof options !== "object" || options === null) throw new TypeError(`the options of \`${word}\` are an object`);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw new TypeError(`\`${word}\` has no option \`${name}\`: it has ${known.join(", ")}`);
  }
};

/** Who may use the paths, or the channels, of a pattern. */
export function rule(pattern, right, ...who) {
  declare("rule");
  host.rule(pattern, right, who);
}

/** A group and its members. */
export function group(name, ...members) {
  declare("group");
  host.group(name, members);
}

/** What a filter decides about a request. */
class Decision {
  constructor(fields) {
    this.fields = fields;
  }
}

/** The fields of a response as pairs. */
const pairs = (headers) => {
  if (headers === undefined) return [];
  if (typeof headers !== "object" || headers === null) {
    throw new TypeError("headers are an object, like { \"Cache-Control\": \"no-store\" }");
  }
  const list = [];
  for (const [name, value] of Object.entries(headers)) {
    host.checkField(name, value);
    list.push([name, value]);
  }
  return list;
};

const text = (value, what) => {
  if (typeof value !== "string") throw new TypeError(`${what} is a string, not ${typeof value}`);
  return value;
};

const REDIRECTS = [301, 302, 303, 307, 308];

/** Sends the client to another address. */
export function redirect(location, status = 303) {
  if (!REDIRECTS.includes(status)) {
    throw new TypeError(`the status of a redirect is ${REDIRECTS.join(", ")}`);
  }
  host.checkField("Location", text(location, "the address of `redirect`"));
  return new Decision({ kind: "redirect", status, location });
}

/** An error with a message for the visitor. */
export function error(status, message) {
  if (!Number.isInteger(status) || status < 400 || status > 599) {
    throw new TypeError("`error` takes a status from 400 to 599, and a message for the visitor");
  }
  return new Decision({ kind: "error", status, message: text(message, "the message of an `error`") });
}

/** A response of its own. */
export function respond(body, options = {}) {
  check(options, ["status", "type", "headers"], "respond");
  const { status = 200, type = "text/plain; charset=utf-8", headers } = options;
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new TypeError("the status of `respond` is a number from 200 to 599");
  }
  host.checkType(text(type, "the `type` of `respond`"));
  return new Decision({ kind: "respond", body: text(body, "the content of `respond`"), status, type, headers: pairs(headers) });
}

/** Continues with another path and query. */
export function rewrite(target, options = {}) {
  check(options, ["headers"], "rewrite");
  if (!/^\/[\x21-\x7e]*$/.test(text(target, "the target of `rewrite`"))) {
    throw new TypeError("`rewrite` takes an encoded path with its query, like \"/shop/a%20b?page=2\"");
  }
  return new Decision({ kind: "rewrite", target, headers: pairs(options.headers) });
}

/** Continues, and sets fields of the response. */
export function withHeaders(headers) {
  return new Decision({ kind: "headers", headers: pairs(headers) });
}

/** A request as a filter sees it. */
class FilterRequest {
  constructor(method, path, query) {
    this.method = method;
    this.path = path;
    this.query = query;
    Object.freeze(this);
  }
  get host() {
    return host.requestHost();
  }
  get address() {
    return host.address();
  }
  get user() {
    return host.user();
  }
  header(name) {
    return host.header(name);
  }
}

/** Sees each request before it is routed. */
export function filter(run, options = {}) {
  declare("filter");
  if (typeof run !== "function") throw new TypeError("`filter` takes a function: filter((request) => ..)");
  if (run instanceof AsyncFunction) throw new TypeError("the function of `filter` must not be async: it runs before each request");
  check(options, ["paths"], "filter");
  const paths = options.paths ?? null;
  if (paths !== null) host.checkPaths(paths);
  if (filters.length === MAX_FILTERS) throw new Error(`start.ts has more than ${MAX_FILTERS} filters: join some of them`);
  filters.push({ run, paths });
}

const filtering = (run) => (method, path, query) => {
  let result;
  try {
    result = run(new FilterRequest(method, path, query));
  } catch (reason) {
    if (reason instanceof Decision) return reason.fields;
    throw reason;
  }
  if (result === undefined || result === null) return undefined;
  if (result instanceof Decision) return result.fields;
  if (result instanceof Promise) throw new TypeError("a filter must not be async: it returned a promise");
  throw new TypeError("a filter returns nothing to continue, or `redirect(..)`, `error(..)`, `respond(..)`, `rewrite(..)` or `withHeaders(..)`");
};

const MAX_PLACES = 1024;

/** Decides in which order requests run. */
export function scheduler(create, options = {}) {
  declare("scheduler");
  if (policy !== null) throw new Error("start.ts has a scheduler already");
  if (typeof create !== "function") {
    throw new TypeError("`scheduler` takes a function that returns the policy: scheduler(() => ({ next: (waiting) => waiting[0] }))");
  }
  check(options, ["places"], "scheduler");
  const { places = null } = options;
  if (places !== null && (!Number.isInteger(places) || places < 1 || places > MAX_PLACES)) {
    throw new TypeError(`the \`places\` of a scheduler are a number from 1 to ${MAX_PLACES}`);
  }
  // Created here, so that a mistake that is found later has this place.
  policy = { create, places, misuse: new TypeError() };
}

/** A request that waits or runs. */
class ScheduledRequest {
  #arrived;
  #id;

  constructor(id, method, path, handler, address, age) {
    this.#id = id;
    this.#arrived = performance.now() - age;
    this.method = method;
    this.path = path;
    this.handler = handler;
    this.address = address;
    Object.freeze(this);
  }
  /** Milliseconds since its arrival. */
  get age() {
    return performance.now() - this.#arrived;
  }
  static id(request) {
    return request.#id;
  }
}

/** The kinds of events, as the host numbers them. */
const ARRIVED = 0, STARTED = 1, ENDED = 2, RESET = 3, KNOWN = 4;

/** The policy of the script as two functions for the host: a turn, and the failure of the last turns. */
function scheduling(create, places, misuse) {
  const made = create();
  const fail = (message) => {
    misuse.message = message;
    throw misuse;
  };
  if (typeof made !== "object" || made === null || made instanceof Promise) {
    fail("the function of `scheduler` returns the policy, an object with `next`, `admit` or both");
  }
  for (const name of ["next", "admit"]) {
    if (made[name] !== undefined && typeof made[name] !== "function") fail(`the \`${name}\` of a scheduler is a function`);
  }
  if (made.next === undefined && made.admit === undefined) {
    fail("a scheduler has `next`, `admit` or both: scheduler(() => ({ next: (waiting) => waiting[0] }))");
  }
  const requests = new Map();
  let waiting = [], running = [], failure;
  const failed = (reason) => (failure ??= { reason });
  // The script gets copies, so that it cannot lose a request.
  const load = () => Object.freeze({ running: running.slice(), waiting: waiting.length, places });
  const take = (list, request) => {
    const at = list.indexOf(request);
    if (at >= 0) list.splice(at, 1);
  };
  const admits = (request) => {
    if (made.admit === undefined) return true;
    try {
      const result = made.admit(request, load());
      if (result === undefined || result === true) return true;
      if (result === false) return false;
      throw new TypeError("`admit` returns true, or false to reject the request");
    } catch (reason) {
      failed(reason);
      return true;
    }
  };
  const picked = () => {
    if (made.next === undefined) return waiting[0];
    try {
      const result = made.next(waiting.slice(), load());
      if (result === null || result === undefined) return null;
      if (waiting.includes(result)) return result;
      throw new TypeError("`next` returns one of the waiting requests, or null to start none now");
    } catch (reason) {
      failed(reason);
      return waiting[0];
    }
  };
  const begin = (request) => {
    take(waiting, request);
    running.push(request);
  };
  const turn = (events, free) => {
    const started = [], refused = [];
    for (const [kind, id, ...about] of events) {
      const known = requests.get(id);
      if (kind === ARRIVED || kind === KNOWN) {
        const request = new ScheduledRequest(id, ...about);
        if (kind === ARRIVED && !admits(request)) {
          refused.push(id);
          continue;
        }
        requests.set(id, request);
        waiting.push(request);
      } else if (kind === STARTED && known !== undefined) {
        begin(known);
      } else if (kind === ENDED && known !== undefined) {
        requests.delete(id);
        take(waiting, known);
        take(running, known);
      } else if (kind === RESET) {
        requests.clear();
        waiting = [];
        running = [];
      }
    }
    for (let left = free; left > 0 && waiting.length > 0; left--) {
      const request = picked();
      if (request === null) break;
      begin(request);
      started.push(ScheduledRequest.id(request));
    }
    return [started, refused, failure !== undefined];
  };
  const explain = () => {
    const { reason } = failure;
    failure = undefined;
    throw reason;
  };
  return { turn, explain };
}

/** What the host reads when start.ts has run. */
export function $start() {
  isLoading = false;
  const result = { filters: filters.map(({ run }) => filtering(run)), paths: filters.map(({ paths }) => paths) };
  if (policy !== null) {
    const { create, places, misuse } = policy;
    result.places = places;
    result.scheduling = (usual) => scheduling(create, places ?? usual, misuse);
  }
  return result;
}
