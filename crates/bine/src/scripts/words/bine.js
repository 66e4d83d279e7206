// The words of applications.
export { change, page, service, Live } from "bine:internal/context";
export { browser, navigate } from "bine:internal/browser";
export { error, notFound, redirect } from "bine:internal/answers";
export { raw } from "bine:internal/markup";
export * from "bine:internal/channels";
export * from "bine:internal/events";
export {
  boolean, bytes, choice, integer, now, number, ref, table, TableError, text, time,
} from "bine:internal/tables";
export { invalid, Upload } from "bine:internal/forms";
export { position, waitForPosition } from "bine:internal/positions";
export { sealed } from "bine:internal/sealed";
export { remote, RemoteError, remoteEvents } from "bine:internal/remote";
export { element, node, tree } from "bine:internal/trees";
