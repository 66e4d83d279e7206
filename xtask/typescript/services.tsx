// Calls of services in Rust that an editor accepts, and those that it rejects. The declarations are
// those that a program of the tests has written: services/services.d.ts.

import { page, service } from "bine";
import { barrels, bill, delete as remove, fill, name, report } from "bine:services";

export const accepted = service((ctx, { label }: { label: string }) => {
  const id: string = fill({ label, liters: 30, kind: "stout", tags: ["dark"] });
  fill({ label, liters: 30, kind: "ale", filled: null, tags: [] });
  for (const barrel of barrels()) {
    const filled: string | null = barrel.filled;
    console.log(barrel.id, barrel.liters + 1, filled);
  }
  const [count, first] = bill({
    lines: [{ barrelId: id, kind: "ale" }, { barrelId: id, kind: "stout", count: 2 }],
    prices: { small: "Free", large: { Cents: 3 }, other: { Range: { least: 1 } } },
    exact: true,
  });
  const large: number | string = count;
  const text: string | null = first;
  remove({ anything: 1 });
  return [large, text, name(), report()];
});
export default page(async () => {
  const found: number = (await barrels()).length;
  const unknown: unknown = await report();
  const nothing: void = await remove({ anything: [] });
  console.log(found, unknown, nothing, (await name()).length);
  return <p>{await fill({ label: "a", liters: 1, kind: "ale", tags: [] })}</p>;
});

fill({ label: 1, liters: 1, kind: "ale", tags: [] }); // rejected: Type 'number' is not assignable to type 'string'
fill({ label: "a", liters: "1", kind: "ale", tags: [] }); // rejected: Type 'string' is not assignable to type 'number'
fill({ label: "a", liters: 1, kind: "porter", tags: [] }); // rejected: Type '"porter"' is not assignable
fill({ label: "a", liters: 1, kind: "ale", tags: [1] }); // rejected: Type 'number' is not assignable to type 'string'
fill({ lable: "a", liters: 1, kind: "ale", tags: [] }); // rejected: 'lable'
fill({ label: "a", liters: 1, kind: "ale" }); // rejected: Property 'tags' is missing
fill(); // rejected: Expected 1 arguments
fill({ label: "a", liters: 1, kind: "ale", filled: 7, tags: [] }); // rejected: Type 'number' is not assignable
bill({ lines: [{ barrelId: "a", kind: "ale", number: 1 }], prices: {}, exact: true }); // rejected: 'number' does not exist
bill({ lines: [], prices: { small: { Cents: "3" } }, exact: true }); // rejected: Type 'string' is not assignable to type 'number'
bill({ lines: [], prices: {}, exact: 1 }); // rejected: Type 'number' is not assignable to type 'boolean'
barrels({ all: true }); // rejected: is not assignable to type 'never'
barrels().map((barrel) => barrel.litres); // rejected: Did you mean 'liters'?
report().total; // rejected: Property 'total' does not exist
import { brew } from "bine:services"; // rejected: has no exported member 'brew'
