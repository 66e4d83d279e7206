// Trees of markup, and nodes that are written for the request.
import { context } from "bine:internal/context";
import { expand, isTree, nodeKind } from "bine:internal/tree";
export { element, isDocument, tree } from "bine:internal/tree";

/** A kind of node, whose function runs when its tree is written:
 * `const Stars = node(({ count }) => "*".repeat(count))`. */
export function node(write) {
  if (typeof write !== "function") {
    throw new TypeError("`node` takes the function that writes the node: node(({ count }) => <b>{count}</b>)");
  }
  return nodeKind((data, format) => write(data, Object.freeze({ ctx: context, format })));
}

/** The result of a page for the host: nodes of the script are written now, because only it can. */
export function written(result) {
  if (result instanceof Promise) return result.then(written);
  return isTree(result) ? expand(result) : result;
}
