// Files of the browser that an editor accepts, and those that it rejects. The declarations are those that a
// program of the tests has written: browser-services.d.ts.

import { call, on, type CallError } from "bine:browser";
import { delete as empty, put } from "bine:services";
import { lost } from "bine:services"; // rejected: has no exported member 'lost'

export const accepted = async (event: MouseEvent, item: { id: number }): Promise<void> => {
  const sum: number = await put({ item: item.id });
  await put({ item: item.id, count: null });
  await empty();
  await empty({});
  const stop = on<{ id: number }>("sold", ({ id }) => console.log(id, sum));
  const value = await call<string>("/shop/name", { item: item.id });
  console.log(value.length);
  stop();
};

export const rejected = async (): Promise<void> => {
  put(); // rejected: Expected 1 arguments
  put({ item: "7" }); // rejected: not assignable to type 'number'
  const sum: number = put({ item: 7 }); // rejected: not assignable to type 'number'
  empty({ item: 7 }); // rejected: not assignable to type 'never'
  on("sold"); // rejected: Expected 2 arguments
  call(7); // rejected: not assignable to parameter of type 'string | URL'
};

export const refused = (error: CallError): string => error.detail; // rejected: not assignable to type 'string'
