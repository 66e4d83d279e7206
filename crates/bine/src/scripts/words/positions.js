// Positions: what this node has applied, and a wait for the commits of other nodes.
import { answer } from "bine:internal/answers";
import { current, wait } from "bine:internal/positions-host";

/** The position of the newest commit that this node has applied. */
export function position() {
  return current();
}

/** Waits until this node has applied a position, for `timeout` milliseconds at most. */
export async function waitForPosition(position, options = {}) {
  if (typeof position !== "string") {
    throw new TypeError("`waitForPosition` takes the text that `position()` has returned on any node");
  }
  const { timeout = 5000, ...others } = options;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw new TypeError(`\`waitForPosition\` has no option \`${unknown}\`: the option is timeout`);
  }
  if (typeof timeout !== "number") {
    throw new TypeError("the option `timeout` of `waitForPosition` is a number of milliseconds");
  }
  answer(await wait(position, timeout));
}
