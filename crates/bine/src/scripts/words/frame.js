// The frame of a page: values of one browser tab.
import { answer, redirect } from "bine:internal/answers";
import { isChanging } from "bine:internal/call";
import { change, find, get, now, to } from "bine:internal/frame-host";

// A change has no result.
const done = (outcome) => void answer(outcome);

const own = Object.freeze({
  get(name) {
    const text = get(name);
    return text === null ? undefined : JSON.parse(text);
  },
  set(name, value) {
    const text = JSON.stringify(value);
    if (text === undefined) throw new TypeError("a frame holds values that JSON can hold");
    return isChanging() ? done(change(name, text)) : now(name, text).then(done);
  },
  to,
});

/** The frame. A page without one is requested again at an address with a frame. */
export function frame() {
  const location = answer(find());
  if (location !== null) throw redirect(location);
  return own;
}
