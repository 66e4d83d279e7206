// The module `bine:start`: the words of the start script of a site, `start.ts`.

declare module "bine:start" {
  // Access rules

  /** What a rule allows: paths are read or written; channels are followed, published to or managed. */
  export type Right = "read" | "write" | "follow" | "publish" | "manage";

  /**
   * Gives a right at the paths, or the channels, of a pattern.
   *
   *     rule("/admin/*", "write", "group:staff", "ann");
   *
   * Who: `anonymous`, `users`, `administrators`, `group:NAME`, or the name of a user.
   */
  export function rule(pattern: string, right: Right, ...who: [string, ...string[]]): void;

  /** Puts users into a group. */
  export function group(name: string, ...users: string[]): void;

  // Filters

  /** A request as a filter sees it. */
  export interface FilterRequest {
    readonly method: string;
    /** The decoded path. */
    readonly path: string;
    /** The query without its `?`, as it was sent; empty if there is none. */
    readonly query: string;
    /** The requested host and port. */
    readonly host: string | null;
    /** The network address of the client; null on a Unix socket. */
    readonly address: string | null;
    /** The user who has logged in, or null. */
    readonly user: { readonly name: string } | null;
    /** A header field, or null. */
    header(name: string): string | null;
  }

  const decision: unique symbol;

  /** What a filter decides. Return it or throw it. */
  export interface Decision {
    readonly [decision]: true;
  }

  /** Header fields of a response. */
  export interface HeaderFields {
    readonly [name: string]: string;
  }

  /**
   * Sees each request before it is routed, on each event loop. Without a result, the request
   * continues.
   *
   *     filter((request) => redirect("/new"), { paths: ["/old", "/archive/*"] });
   */
  export function filter(
    run: (request: FilterRequest) => Decision | undefined | void,
    options?: {
      /** The paths that it sees; all paths without this option, which cost time at each request. */
      readonly paths?: readonly string[];
    },
  ): void;

  /** Sends the client to another address. */
  export function redirect(location: string, status?: 301 | 302 | 303 | 307 | 308): Decision;
  /** An error with a status from 400 to 599 and a message for the visitor. */
  export function error(status: number, message: string): Decision;
  /** A response of its own: plain text, unless `type` names another media type. */
  export function respond(
    body: string,
    options?: { readonly status?: number; readonly type?: string; readonly headers?: HeaderFields },
  ): Decision;
  /** Continues with another path and query. Further filters of the script do not see the request. */
  export function rewrite(target: string, options?: { readonly headers?: HeaderFields }): Decision;
  /** Continues, and sets header fields of the response. */
  export function withHeaders(headers: HeaderFields): Decision;

  // The scheduler

  /** A request that waits or runs. */
  export interface ScheduledRequest {
    readonly method: string;
    /** The decoded path. */
    readonly path: string;
    /** The page or service that answers it, as in the access log. */
    readonly handler: string;
    /** The network address of the client; null on a Unix socket. */
    readonly address: string | null;
    /** Milliseconds since its arrival. */
    readonly age: number;
  }

  /** The load when the policy decides. */
  export interface Load {
    /** The requests that run now. */
    readonly running: readonly ScheduledRequest[];
    /** How many requests wait. */
    readonly waiting: number;
    /** How many requests may run at one time. */
    readonly places: number;
  }

  /** A policy has one of these functions, or both. */
  export interface Policy {
    /** Chooses the waiting request that starts next, while a place is free; null: none now. */
    next?(waiting: readonly ScheduledRequest[], load: Load): ScheduledRequest | null | undefined;
    /** Whether a request that has arrived may wait. `false` rejects it with 503. */
    admit?(request: ScheduledRequest, load: Load): boolean | undefined | void;
  }

  /**
   * Decides in which order requests for pages and services run. The function makes the policy, in an
   * instance of its own, so that the variables of the policy may change.
   *
   *     scheduler(() => ({ next: (waiting) => waiting.at(-1) }));
   */
  export function scheduler(
    create: () => Policy,
    options?: {
      /** How many requests may run at one time, by default as many as there are workers. */
      readonly places?: number;
    },
  ): void;
}
