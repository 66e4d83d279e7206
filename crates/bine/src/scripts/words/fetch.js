// `fetch` and its classes: requests to other servers, over one function of the host that sends one
// request. Scripts are trusted: any server may be called, also one on this machine.
import { cancel, read, send, timeout } from "bine:internal/fetch-host";

const MAX_REDIRECTS = 20;
// Bytes of the body of a request.
const MAX_BODY = 4 << 20;
const REDIRECTS = [301, 302, 303, 307, 308];
const EMPTY = [101, 204, 205, 304];
const METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
// Headers that another server must not get.
const SECRET = ["authorization", "cookie", "proxy-authorization"];
const OF_BODY = ["content-encoding", "content-language", "content-location", "content-type"];

// The number of the last request.
let last = 0;
let copyBody, newResponse, responseHeaders, takeBody;

function headerName(name) {
  const text = `${name}`;
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text)) {
    throw new TypeError(`${JSON.stringify(text)} is no name of a header`);
  }
  return text.toLowerCase();
}

function headerValue(name, value) {
  const text = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  if (/[^\t -~]/.test(text)) {
    throw new TypeError(`the header ${name} has a line break or a character beyond ASCII: encode it`);
  }
  return text;
}

class Headers {
  // The values of each name.
  #fields = new Map();
  constructor(init) {
    if (init === undefined || init === null) return;
    if (typeof init !== "object") throw new TypeError("headers are an object or a list of pairs");
    const pairs = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
    for (const pair of pairs) {
      const [name, value, ...more] = pair;
      if (value === undefined || more.length > 0) {
        throw new TypeError("headers are pairs of a name and a value");
      }
      this.append(name, value);
    }
  }
  static {
    // Headers that another server has chosen.
    responseHeaders = (pairs) => {
      const headers = new Headers();
      for (const [name, value] of pairs) headers.#add(name.toLowerCase(), value);
      return headers;
    };
  }
  #add(name, value) {
    const values = this.#fields.get(name);
    if (values) values.push(value);
    else this.#fields.set(name, [value]);
  }
  append(name, value) {
    const own = headerName(name);
    this.#add(own, headerValue(own, value));
  }
  delete(name) {
    this.#fields.delete(headerName(name));
  }
  get(name) {
    return this.#fields.get(headerName(name))?.join(", ") ?? null;
  }
  getSetCookie() {
    return [...(this.#fields.get("set-cookie") ?? [])];
  }
  has(name) {
    return this.#fields.has(headerName(name));
  }
  set(name, value) {
    const own = headerName(name);
    this.#fields.set(own, [headerValue(own, value)]);
  }
  forEach(visit, self) {
    for (const [name, value] of this) visit.call(self, value, name, this);
  }
  *entries() {
    for (const name of [...this.#fields.keys()].sort()) {
      const values = this.#fields.get(name) ?? [];
      // Cookies contain commas.
      if (name === "set-cookie") for (const value of values) yield [name, value];
      else yield [name, values.join(", ")];
    }
  }
  *keys() {
    for (const pair of this.entries()) yield pair[0];
  }
  *values() {
    for (const pair of this.entries()) yield pair[1];
  }
  [Symbol.iterator]() {
    return this.entries();
  }
}

// The bytes of a body and their media type.
function bodyOf(body) {
  if (body === undefined || body === null) return [null, null];
  if (body instanceof URLSearchParams) {
    const type = "application/x-www-form-urlencoded;charset=UTF-8";
    return [new TextEncoder().encode(body.toString()), type];
  }
  if (body instanceof ArrayBuffer) return [new Uint8Array(body.slice(0)), null];
  if (ArrayBuffer.isView(body)) {
    return [new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice(), null];
  }
  if (typeof body === "string") {
    return [new TextEncoder().encode(body), "text/plain;charset=UTF-8"];
  }
  throw new TypeError("a body is a string, bytes or URLSearchParams: write JSON.stringify(..)");
}

// What a request and a response have in common: bytes that are read once.
class Body {
  #bytes;
  #isUsed = false;
  constructor(bytes) {
    this.#bytes = bytes;
  }
  static {
    // The bytes; null if there is no body.
    takeBody = (body) => {
      const bytes = copyBody(body);
      body.#isUsed = bytes !== null;
      body.#bytes = null;
      return bytes;
    };
    copyBody = (body) => {
      if (body.#isUsed) throw new TypeError("the body was read already");
      return body.#bytes;
    };
  }
  get bodyUsed() {
    return this.#isUsed;
  }
  async bytes() {
    return takeBody(this) ?? new Uint8Array();
  }
  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }
  async text() {
    return new TextDecoder().decode(await this.bytes());
  }
  async json() {
    return JSON.parse(await this.text());
  }
}

class Request extends Body {
  #url;
  #method = "GET";
  #headers;
  #redirect = "follow";
  #signal = null;
  constructor(input, init = {}) {
    const given = input instanceof Request ? input : null;
    const url = given ? new URL(given.url) : wholeUrl(input);
    const method = `${init.method ?? given?.method ?? "GET"}`;
    const [bytes, type] = init.body === undefined && given ? [takeBody(given), null] : bodyOf(init.body);
    const upper = method.toUpperCase();
    if (bytes !== null && (upper === "GET" || upper === "HEAD")) {
      throw new TypeError(`a ${upper} request has no body`);
    }
    if (bytes !== null && bytes.length > MAX_BODY) {
      throw new TypeError(`the body of a request has at most ${MAX_BODY} bytes, not ${bytes.length}`);
    }
    super(bytes);
    this.#url = url;
    this.#method = METHODS.includes(upper) ? upper : method;
    this.#headers = new Headers(init.headers ?? given?.headers);
    if (type !== null && !this.#headers.has("content-type")) this.#headers.set("content-type", type);
    this.#redirect = `${init.redirect ?? given?.redirect ?? "follow"}`;
    if (!["error", "follow", "manual"].includes(this.#redirect)) {
      throw new TypeError('redirect is "follow", "error" or "manual"');
    }
    this.#signal = (init.signal === undefined ? given?.signal : init.signal) ?? null;
    if (this.#signal !== null && !(this.#signal instanceof AbortSignal)) {
      throw new TypeError("the signal is an AbortSignal");
    }
  }
  get url() {
    return this.#url.href;
  }
  get method() {
    return this.#method;
  }
  get headers() {
    return this.#headers;
  }
  get redirect() {
    return this.#redirect;
  }
  get signal() {
    return this.#signal;
  }
  clone() {
    const { url, method, headers, redirect, signal } = this;
    return new Request(url, { method, headers, redirect, signal, body: copyBody(this) });
  }
}

class Response extends Body {
  #status;
  #statusText;
  #headers;
  #url = "";
  #redirected = false;
  constructor(body, { status = 200, statusText = "", headers } = {}) {
    if (!Number.isInteger(status) || status < 200 || status > 599) {
      throw new RangeError(`a status is a number from 200 to 599, not ${status}`);
    }
    const [bytes, type] = bodyOf(body);
    if (bytes !== null && EMPTY.includes(status)) {
      throw new TypeError(`a response with the status ${status} has no body`);
    }
    super(bytes);
    this.#status = status;
    this.#statusText = `${statusText}`;
    this.#headers = new Headers(headers);
    if (type !== null && !this.#headers.has("content-type")) this.#headers.set("content-type", type);
  }
  static json(value, init = {}) {
    const text = JSON.stringify(value);
    if (text === undefined) throw new TypeError("the value has no JSON");
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(text, { ...init, headers });
  }
  static {
    newResponse = (head, bytes, url, redirected) => {
      const response = new Response(bytes);
      response.#status = head.status;
      response.#statusText = head.reason;
      response.#headers = responseHeaders(head.headers);
      response.#url = url;
      response.#redirected = redirected;
      return response;
    };
  }
  get ok() {
    return this.#status >= 200 && this.#status < 300;
  }
  get status() {
    return this.#status;
  }
  get statusText() {
    return this.#statusText;
  }
  get headers() {
    return this.#headers;
  }
  get url() {
    return this.#url;
  }
  get redirected() {
    return this.#redirected;
  }
  get type() {
    return this.#url === "" ? "default" : "basic";
  }
  clone() {
    const { status, statusText: reason } = this;
    const bytes = copyBody(this)?.slice() ?? null;
    return newResponse({ status, reason, headers: [...this.#headers] }, bytes, this.#url, this.#redirected);
  }
}

// A URL of a request.
function wholeUrl(input) {
  const text = input instanceof URL ? input.href : `${input}`;
  const url = URL.parse(text);
  if (url === null) {
    const shown = text.replace(/^([^/?#]*\/\/)?[^/?#]*@/, "$1").replace(/[?#].*/s, "").slice(0, 200);
    throw new TypeError(`fetch takes a whole URL such as https://example.org/, not ${JSON.stringify(shown)}`);
  }
  checkUrl(url);
  return url;
}

function checkUrl(url) {
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new TypeError(`fetch knows http: and https:, not ${url.protocol}`);
  }
  if (url.username !== "" || url.password !== "") {
    throw failure(url, 'the URL has a user or a password: send them in the header "authorization"');
  }
}

// The error of a request. Its URL has neither credentials nor a query, which may be secret.
function failure(url, reason) {
  return new TypeError(`cannot fetch ${url.origin}${url.pathname}: ${reason}`);
}

// Sends one request, and returns the head of its response and the body.
async function exchange(url, method, headers, body, end, signal) {
  const number = ++last;
  const stop = () => cancel(number);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    const target = url.pathname + url.search;
    const left = end - performance.now();
    const head = await send(number, method, url.origin, target, [...headers], body ?? undefined, left);
    // The body passes in parts, each within the limits of a value.
    const bytes = new Uint8Array(head.length);
    for (let at = 0; at < bytes.length; ) {
      const part = read(number);
      bytes.set(part, at);
      at += part.length;
    }
    return [head, bytes];
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

async function fetch(input, init) {
  const request = new Request(input, init);
  const { redirect, signal } = request;
  signal?.throwIfAborted();
  let url = new URL(request.url);
  let method = request.method;
  const headers = new Headers(request.headers);
  let body = takeBody(request);
  const end = performance.now() + timeout;
  for (let count = 0; ; count++) {
    const [head, bytes] = await exchange(url, method, headers, body, end, signal);
    const location = responseHeaders(head.headers).get("location");
    if (redirect === "manual" || location === null || !REDIRECTS.includes(head.status)) {
      url.hash = "";
      return newResponse(head, bytes, url.href, count > 0);
    }
    if (redirect === "error") throw failure(url, 'it redirects, and the option "redirect" is "error"');
    if (count === MAX_REDIRECTS) throw failure(url, `more than ${MAX_REDIRECTS} redirects`);
    const next = URL.parse(location, url.href);
    if (next === null) throw failure(url, "it redirects to an invalid URL");
    checkUrl(next);
    const { status } = head;
    const loses = status === 303 ? method !== "HEAD" : status < 303 && method === "POST";
    if (loses && method !== "GET") {
      method = "GET";
      body = null;
      for (const name of OF_BODY) headers.delete(name);
    }
    if (next.origin !== url.origin) for (const name of SECRET) headers.delete(name);
    url = next;
  }
}

for (const [name, value] of Object.entries({ fetch, Headers, Request, Response })) {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
}
