// The services of `bine-bench service-calls` in TSX. Each returns 0 + 1 + 2 + .. up to `count`.
import { page, service } from "bine";
import { add } from "bine:services";

export const plus = service((ctx, { left, right }: { left: number; right: number }) => left + right);

/** Calls the service in Rust, in the transaction of this one. */
export const sumByRust = service((ctx, { count }: { count: number }) => {
  let sum = 0;
  for (let right = 1; right <= count; right++) {
    sum = add({ left: sum, right });
  }
  return sum;
});

/** Calls the service in Rust outside of a transaction. */
export const sumByRustOutside = service(async (ctx, { count }: { count: number }) => {
  let sum = 0;
  for (let right = 1; right <= count; right++) {
    sum = await add({ left: sum, right });
  }
  return sum;
});

export default page(() => <p>Sums</p>);
