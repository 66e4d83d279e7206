// The module that compiled markup imports.
import { region } from "bine:internal/call";
export { $handler } from "bine:internal/browser";
export { $html, $markup, $row } from "bine:internal/markup";
export { $rows } from "bine:internal/rows";
export { $shape, $tree } from "bine:internal/tree";

// A region of a live page. The host notes what was read up to its end.
export const $live = (_hash, content) => {
  const inner = content();
  return inner instanceof Promise ? inner.then(region) : region(inner);
};
