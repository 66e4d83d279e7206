import type { Page } from "bine";
import { type User, page as show, table } from "bine";
import rooms, * as all from "./rooms.ts";
export type { Row } from "./rows.ts";
export { one, type Two } from "./rows.ts";
export * from "./rows.ts";

type Row = { id: number }
interface Options {
  title?: string;
}
export const messages = table("messages", {}) as unknown as Row;
let count: number = 0;
const cache: Map<string, Row> = new Map<string, Row>();
const constant = [1, 2];
count += 1;

function first<T>(list: T[]): T | undefined
function first(list: any[], options?: Options) {
  count++;
  cache.set("a", list[0]!);
  return list[0] satisfies any;
}

abstract class Base<T> extends Array<T> implements Iterable<T> {
  private static readonly limit?: number = 1
  declare gone: string
  protected ["name"]: string = "a"
  value: T
  abstract go(): void
  override toString(this: Base<T>, depth?: number): string { return super.toString() }
}

const arrow = async <T,>(value: T, ...rest: T[]): Promise<
  T
> => value;

const text = count as unknown as string
const next = (first)([text])

export { count, Base as default };
