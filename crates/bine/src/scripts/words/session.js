// The session of the visitor: values, and the login.
import { answer } from "bine:internal/answers";
import { isChanging, visitorName } from "bine:internal/call";
import { all, change, get, now } from "bine:internal/session-host";

/** In a transaction, a change is a part of it; elsewhere there is a promise. */
const run = (...task) => (isChanging() ? done(change(...task)) : now(...task).then(done));

// `null` stands for no result.
const done = (outcome) => answer(outcome) ?? undefined;

function textOf(value) {
  const text = JSON.stringify(value);
  if (text === undefined) {
    throw new TypeError("a session holds values that JSON can hold; write session.remove(name) to remove one");
  }
  return text;
}

export const session = Object.freeze({
  /** The name that the server has made for this visitor, the same at each visit. */
  get name() {
    return visitorName();
  },
  get(name) {
    const text = get(name);
    return text === null ? undefined : JSON.parse(text);
  },
  set: (name, value) => run("set", name, textOf(value)),
  remove: (name) => run("remove", name),
  logIn(user, options = {}) {
    if (typeof options !== "object" || options === null) {
      throw new TypeError("the options of a login are an object: session.logIn(user, { brief: true })");
    }
    return run("logIn", user, options);
  },
  logOut: () => run("logOut"),
  all,
  revoke: (id) => run("revoke", id),
  revokeOthers: () => run("revokeOthers"),
  revokeUser: (user) => run("revokeUser", user),
});
