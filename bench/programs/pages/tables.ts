import { integer, table, text, time } from "bine";

export const entries = table("entries", { number: integer(), body: text(), author: text() });

export const messages = table("messages", { at: time(), body: text(), author: text() });
