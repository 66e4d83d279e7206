// The services of the program in Rust, as functions of the browser. The program writes this file with its
// option `--types`, and when it starts in development, so a change in it is lost.

declare module "bine:services" {
  /** A whole number of 64 bits. It is a text if it is larger than a number can hold exactly. */
  type Integer64 = number | string;

  /** A service without arguments accepts an empty object only. */
  type NoArguments = { [name: string]: never };

  /**
   * Calls a service in Rust. If the service fails, or cannot be reached, the promise is rejected: with an
   * error that has `status`, `detail` and `errors` if there is a response.
   */
  type RustService<Argument, Result> = (
    ...argument: {} extends Argument ? [argument?: Argument] : [argument: Argument]
  ) => Promise<Result>;

  /** `browser_files::shop::delete` in Rust, at `/browser_files/delete`. */
  const service_delete: RustService<NoArguments, void>;
  export { service_delete as delete };

  /** `browser_files::shop::put` in Rust, at `/browser_files/put`. */
  export const put: RustService<{ item: number; count?: number | null | undefined }, number>;

  export {};
}
