// The module `bine:browser`: what a file of the browser uses of the script of pages.

declare module "bine:browser" {
  /** An error of a call: the response of a service that has failed. */
  export interface CallError extends Error {
    /** The status of HTTP. */
    readonly status: number;
    /** What the service tells the user. */
    readonly detail?: string;
    /** The arguments that the service rejects. */
    readonly errors?: readonly { readonly name: string; readonly detail: string }[];
  }

  /**
   * Calls a service of this server by its path. The promise is rejected with a `CallError` if the service
   * fails.
   */
  export function call<Result = unknown>(
    path: string | URL,
    values?: { readonly [name: string]: unknown },
  ): Promise<Result>;

  /** A message of a channel. */
  export interface Message {
    /** The position among all messages. */
    readonly cursor: string;
    readonly time: string;
    /** The media type. */
    readonly type: string;
    readonly event: string | null;
    readonly id: string | null;
    /** A string, a value of JSON, or a `Uint8Array`. */
    readonly data: any;
  }

  /**
   * Calls the function for each message of a channel from now on. Returns a function that stops this.
   * `after`: begins after the message with this cursor, or with the `"earliest"` one. `lost` is called if
   * messages may be missing.
   */
  export function follow(
    channel: string,
    handler: (message: Message) => unknown,
    options?: { readonly after?: string | undefined; readonly lost?: () => unknown },
  ): () => void;

  /** Shows another page, as a link does, without loading the scripts of the page again. */
  export function navigate(address: string | URL): Promise<void>;

  /**
   * Calls the function for each event of the program with this name. Returns a function that stops this.
   */
  export function on<Data = unknown>(name: string, handler: (data: Data) => unknown): () => void;
}
