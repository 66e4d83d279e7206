// Answers that are no page: a page or a service returns or throws them.

export class Answer extends Error {
  constructor(fields) {
    super(fields.message ?? `an answer with status ${fields.status}`);
    this.fields = fields;
  }
}

/** Sends the browser to another address. */
export function redirect(location) {
  if (typeof location !== "string") {
    throw new TypeError("`redirect` takes the address, as in `redirect(\"/board/\")`");
  }
  return new Answer({ $status: 303, location });
}

/** There is no such page or row. */
export function notFound(message) {
  return error(404, message ?? "");
}

/** An error with a status from 400 to 599 and a message for the visitor. */
export function error(status, message) {
  if (!Number.isInteger(status) || status < 400 || status > 599) {
    throw new TypeError("`error` takes a status from 400 to 599, and a message for the visitor");
  }
  if (typeof message !== "string") throw new TypeError("the message of an `error` is a string");
  return new Answer({ $status: status, message });
}

/** What a function of the program has answered: the value, or the error that it throws. */
export function answer(outcome) {
  if (outcome.$failure !== undefined) throw new Error(outcome.$failure);
  if (outcome.$status !== undefined) throw new Answer(outcome);
  return outcome.value;
}

/** The result of a function for the host: an answer as its fields. */
export const toHost = (result) => (result instanceof Answer ? result.fields : result);

/** What a function has thrown: an answer becomes the result. */
export function thrown(reason) {
  if (reason instanceof Answer) return reason.fields;
  throw reason;
}
