// The pages of `bine-bench scripts` in TSX: hello, and two pages with rows of tables.
import { page, service } from "bine";

import { entries, messages } from "./tables.ts";

type Entry = { number: number; body: string; author: string };
type Message = { at: string; body: string; author: string };

export const addEntry = service((ctx, { number, body, author }: Entry) =>
  entries.insert({ number, body, author }));

export const addMessage = service((ctx, { at, body, author }: Message) =>
  messages.insert({ at, body, author }));

export const title = "Hello";

export default page((ctx, { name = "" }) => <h1>Hello {name}</h1>);
