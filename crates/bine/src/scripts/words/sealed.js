// Values that visitors cannot read or change.
import { seal } from "bine:internal/sealed-host";

/** Encrypts arguments of a service for the session of the visitor. */
export function sealed(service, values) {
  if (typeof service !== "function" || typeof service.url !== "string") {
    throw new TypeError("`sealed` takes a service and its arguments: sealed(remove, { id: task.id })");
  }
  if (typeof values !== "object" || values === null) {
    throw new TypeError("the arguments of `sealed` are an object: sealed(remove, { id: task.id })");
  }
  const result = {};
  for (const [name, value] of Object.entries(values)) {
    const json = JSON.stringify(value);
    if (json === undefined) throw new TypeError(`\`${name}\` has no JSON, so it cannot be sealed`);
    result[name] = seal(service.url, name, json);
  }
  return result;
}
