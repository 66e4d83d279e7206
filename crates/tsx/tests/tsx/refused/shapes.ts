import { service } from "bine";
import type { Row } from "./rows.ts";
type Recursive = { a: Recursive };
interface Wide extends Row { b: string }
export const imported = service((ctx, { a }: { a: Row }) => a);
export const recursive = service((ctx, a: Recursive) => a);
export const wide = service((ctx, a: Wide) => a);
export const mixed = service((ctx, { a }: { a: string | string[] }) => a);
export const template = service((ctx, { a }: { a: `x${string}` }) => a);
export const big = service((ctx, { a }: { a: 10n | bigint }) => a);
export const unknown = service((ctx, { a }: { a: unknown }) => a);
export const date = service((ctx, { a }: { a: Date }) => a);
export const tuple = service((ctx, { a }: { a: [string, number] }) => a);
export const called = service((ctx, { a }: { a(): void }) => a);
export const indexed = service((ctx, { a }: { a: { [name: string]: string } }) => a);
export const both = service((ctx, { a }: { a: { b: string } & { c: string } }) => a);
export const made = service((ctx, { a }: { a: Partial<{ b: string }> }) => a);
export const texts = service((ctx, a: string) => a);
export const prototype = service((ctx, { a }: { a: { __proto__: string } }) => a);
