// The services of the program in Rust: the module `bine:services`. The program writes this file with
// its option `--types`, and when it starts in development, so a change in it is lost.

import type { Addressed } from "./markup.d.ts";

/** A whole number of 64 bits. It is a text if it is larger than a number can hold exactly. */
type Integer64 = number | string;

/**
 * The answer of a call: the value itself in a service that is no `async` function, because the call
 * joins its transaction, and a promise of it elsewhere.
 */
type Answer<T, All = T> = [All] extends [void]
  ? Promise<void>
  : T extends null | undefined
  ? T
  : T & Promise<All>;

/** A service without arguments accepts an empty object only. */
type NoArguments = { [name: string]: never };

/** A service in Rust. */
interface RustService<Argument, Result> extends Addressed {
  (...argument: {} extends Argument ? [argument?: Argument] : [argument: Argument]): Answer<Result>;
}

/** `scripts::service_types::barrels` in Rust, at `/scripts/barrels`. */
export declare const barrels: RustService<NoArguments, { id: string; label: string; liters: number; filled: string | null }[]>;

/** `scripts::service_types::bill` in Rust, at `/scripts/bill`. */
export declare const bill: RustService<{ lines: { barrelId: string; kind: "ale" | "stout"; count?: number | undefined }[]; prices: { [name: string]: "Free" | { Cents: number } | { Range: { least: number; most?: number | null | undefined } } }; exact: boolean }, [Integer64, string | null]>;

/** `scripts::service_types::delete` in Rust, at `/cellar/delete`. */
declare const service_delete: RustService<{ anything: unknown /* serde_json::Value */ }, void>;
export { service_delete as delete };

/** `scripts::service_types::fill` in Rust, at `/scripts/fill`. */
export declare const fill: RustService<{ label: string; liters: number; kind: "ale" | "stout"; filled?: string | null | undefined; tags: string[] }, string>;

/** `scripts::service_types::name` in Rust, at `/scripts/name`. */
export declare const name: RustService<NoArguments, string>;

/** `scripts::service_types::report` in Rust, at `/scripts/report`. */
export declare const report: RustService<NoArguments, unknown /* Report */>;
