// Calls of services of other Bine servers, over functions of the host.
import { Answer } from "bine:internal/answers";
import { call, close, listen, next } from "bine:internal/remote-host";

/** A call of another server that has failed. Without a `catch`, the visitor gets the answer that a page
 * in Rust would give: that of the other server, or 502 or 504. */
export class RemoteError extends Answer {
  constructor(failure) {
    super(failure.answer);
    this.name = "RemoteError";
    this.message = failure.message;
    /** "refused", "unreached", "unanswered", "timedOut", "misunderstood" or "misused". */
    this.reason = failure.reason;
    /** The status of a refusal, or null. */
    this.status = failure.status ?? null;
  }
}

const OPTIONS = { token: "string", timeout: "number", certificates: "string", maxResponse: "number" };

/** The options for the host: an array, in this order. */
function optionsOf(word, options) {
  const names = Object.keys(OPTIONS);
  if (options === null || typeof options !== "object") {
    throw new TypeError(`the options of \`${word}\` are an object with ${names.join(", ")}`);
  }
  for (const [name, value] of Object.entries(options)) {
    const kind = Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : undefined;
    if (kind === undefined) {
      throw new TypeError(`\`${word}\` has no option \`${name}\`: the options are ${names.join(", ")}`);
    }
    if (value === undefined) continue;
    if (typeof value !== kind || (kind === "number" && !(value > 0 && value <= 2 ** 31))) {
      const wanted = kind === "number" ? "a number greater than 0" : "a string";
      throw new TypeError(`the option \`${name}\` of \`${word}\` is ${wanted}`);
    }
  }
  return names.map((name) => options[name]);
}

function addressOf(word, address) {
  if (typeof address === "string") return address;
  if (address instanceof URL) return address.href;
  throw new TypeError(`\`${word}\` takes the address of a server: ${word}("https://cellar.home:8443")`);
}

const isArguments = (values) =>
  values !== null && typeof values === "object" && !Array.isArray(values);

/** The services of another server at an address, each as a function. */
export function remote(address, options = {}) {
  const base = addressOf("remote", address);
  const given = optionsOf("remote", options);
  const service = (name) => async (values = {}) => {
    if (!isArguments(values)) {
      throw new TypeError(`the arguments of \`${name}\` are an object, with each under its name`);
    }
    const outcome = await call(base, `/${encodeURIComponent(name)}`, values, ...given);
    if (outcome.failure !== undefined) throw new RemoteError(outcome.failure);
    return outcome.value;
  };
  return new Proxy(Object.freeze({}), {
    // An `await` of the value asks for `then`.
    get: (_, name) => (typeof name !== "string" || name === "then" ? undefined : service(name)),
    set: (_, name) => {
      throw new TypeError(`\`${String(name)}\` is a service of another server and cannot be changed`);
    },
  });
}

/** The events of one name that another server sends, from the first `next` on. */
export function remoteEvents(address, event, options = {}) {
  const base = addressOf("remoteEvents", address);
  if (typeof event !== "string" || event === "") {
    throw new TypeError('`remoteEvents` takes the name of an event: remoteEvents(url, "temperature")');
  }
  const given = optionsOf("remoteEvents", options);
  let number = null;
  return Object.freeze({
    /** The next event; undefined if there is none within this number of milliseconds. */
    async next(milliseconds = 1000) {
      if (typeof milliseconds !== "number" || !(milliseconds >= 0)) {
        throw new TypeError("`next` takes the number of milliseconds to wait");
      }
      number ??= listen(base, event, ...given);
      const outcome = await next(number, milliseconds);
      if (outcome.failure !== undefined) throw new RemoteError(outcome.failure);
      return outcome.value;
    },
    close() {
      if (number !== null) close(number);
      number = null;
    },
  });
}
