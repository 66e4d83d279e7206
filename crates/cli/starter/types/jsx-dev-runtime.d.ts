// The same as `jsx-runtime`, under the name that `"jsx": "react-jsxdev"` looks for.

import type { Markup } from "./markup.d.ts";

export { Fragment, type JSX } from "./jsx-runtime.d.ts";
export declare function jsxDEV(tag: unknown, properties: unknown): Markup;
