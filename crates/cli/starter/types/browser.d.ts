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

  /**
   * Calls the function for each event of the program with this name. Returns a function that stops this.
   */
  export function on<Data = unknown>(name: string, handler: (data: Data) => void): () => void;
}
