// The global names of a script besides those of the language. There is no `window`, no DOM and no
// Node API on the server.

/** Writes to the log of the server. */
declare const console: {
  debug(...values: unknown[]): void;
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  /** Writes an error if the condition is false. */
  assert(condition: unknown, ...values: unknown[]): void;
};

/** Runs a function once, after a delay in milliseconds. The result is for `clearTimeout`. */
declare function setTimeout<Arguments extends unknown[]>(
  run: (...values: Arguments) => unknown,
  delay?: number,
  ...values: Arguments
): number;
/** Runs a function again and again. The result is for `clearInterval`. */
declare function setInterval<Arguments extends unknown[]>(
  run: (...values: Arguments) => unknown,
  delay?: number,
  ...values: Arguments
): number;
declare function clearTimeout(timer: number | undefined): void;
declare function clearInterval(timer: number | undefined): void;
declare function queueMicrotask(run: () => void): void;

declare const performance: {
  /** Milliseconds since the script was started. */
  now(): number;
};

declare const crypto: {
  /** Fills an array of integers with random bytes. */
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  /** A random identifier, such as `36b8f84d-df4e-4d49-b662-bcde71a8764f`. */
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
};

/** Copies a value with everything that it contains. */
declare function structuredClone<T>(value: T): T;
/** Decodes base64; each character of the result is one byte. */
declare function atob(text: string): string;
/** Encodes a text of bytes as base64. */
declare function btoa(text: string): string;

interface TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array;
  encodeInto(text: string, target: Uint8Array): { read: number; written: number };
}
declare const TextEncoder: { new (): TextEncoder; readonly prototype: TextEncoder };

interface TextDecoder {
  readonly encoding: "utf-8";
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(bytes?: ArrayBuffer | ArrayBufferView): string;
}
declare const TextDecoder: {
  new (label?: "utf-8" | "utf8", options?: { fatal?: boolean; ignoreBOM?: boolean }): TextDecoder;
  readonly prototype: TextDecoder;
};

interface URLSearchParams extends Iterable<[string, string]> {
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(visit: (value: string, name: string, all: URLSearchParams) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  toString(): string;
}
declare const URLSearchParams: {
  new (
    init?: string | Iterable<readonly [string, string]> | { readonly [name: string]: string },
  ): URLSearchParams;
  readonly prototype: URLSearchParams;
};

interface URL {
  href: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  hash: string;
  readonly origin: string;
  readonly searchParams: URLSearchParams;
  toString(): string;
  toJSON(): string;
}
declare const URL: {
  new (url: string | URL, base?: string | URL): URL;
  readonly prototype: URL;
  canParse(url: string | URL, base?: string | URL): boolean;
  parse(url: string | URL, base?: string | URL): URL | null;
};

interface DOMException extends Error {
  readonly name: string;
}
declare const DOMException: {
  new (message?: string, name?: string): DOMException;
  readonly prototype: DOMException;
};

interface Event {
  readonly type: string;
  readonly target: EventTarget | null;
}
declare const Event: { new (type: string): Event; readonly prototype: Event };

type EventListener = ((event: Event) => void) | { handleEvent(event: Event): void };

interface EventTarget {
  addEventListener(type: string, listener: EventListener, options?: { once?: boolean }): void;
  removeEventListener(type: string, listener: EventListener): void;
  dispatchEvent(event: Event): boolean;
}
declare const EventTarget: { new (): EventTarget; readonly prototype: EventTarget };

interface AbortSignal extends EventTarget {
  readonly aborted: boolean;
  readonly reason: unknown;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}
declare const AbortSignal: {
  readonly prototype: AbortSignal;
  abort(reason?: unknown): AbortSignal;
  timeout(milliseconds: number): AbortSignal;
  any(signals: Iterable<AbortSignal>): AbortSignal;
};

interface AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
declare const AbortController: { new (): AbortController; readonly prototype: AbortController };

type HeadersInit = Iterable<readonly [string, string]> | { readonly [name: string]: string };

interface Headers extends Iterable<[string, string]> {
  append(name: string, value: string): void;
  delete(name: string): void;
  /** All values of a name, separated by commas, or null. */
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(visit: (value: string, name: string, all: Headers) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
}
declare const Headers: { new (init?: HeadersInit | null): Headers; readonly prototype: Headers };

type BodyInit = string | ArrayBuffer | ArrayBufferView | URLSearchParams;

/** What a request and a response have in common. A body can be read once. */
interface Body {
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json(): Promise<any>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  redirect?: "follow" | "error" | "manual";
  signal?: AbortSignal | null;
}

interface Request extends Body {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly redirect: "follow" | "error" | "manual";
  readonly signal: AbortSignal | null;
  clone(): Request;
}
declare const Request: {
  new (url: string | URL | Request, init?: RequestInit): Request;
  readonly prototype: Request;
};

interface ResponseInit {
  status?: number;
  statusText?: string;
  headers?: HeadersInit;
}

interface Response extends Body {
  readonly status: number;
  readonly statusText: string;
  /** Whether the status is from 200 to 299. */
  readonly ok: boolean;
  readonly url: string;
  readonly redirected: boolean;
  readonly type: "basic" | "default";
  readonly headers: Headers;
  clone(): Response;
}
declare const Response: {
  new (body?: BodyInit | null, init?: ResponseInit): Response;
  readonly prototype: Response;
  json(value: unknown, init?: ResponseInit): Response;
};

/** Sends an HTTP request to another server. */
declare function fetch(url: string | URL | Request, init?: RequestInit): Promise<Response>;
