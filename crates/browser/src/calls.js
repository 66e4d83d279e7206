// Calls of services, their results and their errors.

import { markChanged, sending } from "./morph.js";

// Functions that remove the error messages of a form or another element.
const undoNotes = new WeakMap();
// For each element, a function that starts (true) or cancels (false) the newest queued call.
const queued = new WeakMap();
let noteCount = 0;

// Calls a service with named arguments and returns its result. Throws an Error with `status`,
// `detail` and `errors`, one for each invalid argument: `{ name, detail }`, perhaps with a `label`.
// Without a complete response the status is 0.
export async function call(url, args = {}) {
  const headers = { Accept: "application/json", "Content-Type": "application/json" };
  try {
    return await readResult(await fetch(url, { method: "POST", headers, body: JSON.stringify(args) }));
  } catch (error) {
    error.status ??= 0;
    throw error;
  }
}

// Reads the response of a service. Errors have the format of RFC 9457.
export async function readResult(answer) {
  const isJson = /\bjson\b/.test(answer.headers.get("Content-Type"));
  const value = isJson ? await answer.json() : undefined;
  if (answer.ok) return value;
  const { title, detail, errors } = value ?? {};
  const text = detail ?? title ?? `${answer.status} ${answer.statusText}`;
  throw Object.assign(new Error(text), { status: answer.status, detail, errors });
}

// Runs a request on behalf of an element, possibly triggered by a button. Marks the element as
// pending, then shows an error if there is one. Each element has one pending request. The newest
// call waits for it, but a button press during a request is ignored.
export async function send(element, button, task) {
  if (sending.has(element)) {
    queued.get(element)?.(false);
    if (button || !(await new Promise((resolve) => queued.set(element, resolve)))) return false;
    queued.delete(element);
  }
  // Disabling a button removes its focus.
  const isFocused = button && button === document.activeElement;
  hideProblem(element);
  sending.add(element);
  markChanged(element, "class");
  element.classList.add("is-sending");
  if (button) markChanged(button, "disabled");
  if (button) button.disabled = true;
  const problem = await task().then(() => {}, (error) => error);
  sending.delete(element);
  element.classList.remove("is-sending");
  if (button) button.disabled = false;
  if (isFocused && document.activeElement === document.body) button.focus();
  if (problem) showProblem(element, problem);
  queued.get(element)?.(true);
  return !problem;
}

// Removes the error messages of an element.
export function hideProblem(element) {
  for (const undo of undoNotes.get(element) ?? []) undo();
  undoNotes.delete(element);
}

// Shows an error: at each field that it names, and the rest at the end of the form or after another
// element.
export function showProblem(element, { message, status, errors = [] }) {
  const undo = [];
  undoNotes.set(element, undo);
  const addNote = (text, put) => {
    const note = Object.assign(document.createElement("p"), { className: "problem", role: "alert", id: `problem-${++noteCount}`, textContent: text, isOurs: true });
    put(note);
    undo.push(() => note.remove());
    return note.id;
  };
  const mark = (field, name, value) => {
    const before = field.getAttribute(name);
    markChanged(field, name);
    field.setAttribute(name, value);
    undo.push(() => (before === null ? field.removeAttribute(name) : field.setAttribute(name, before)));
  };
  const isForm = element.localName === "form";
  const general = [];
  let first;
  for (const { name, label = name, detail } of errors) {
    const field = isForm && element.querySelector(`[name="${CSS.escape(name)}"]:not([type=hidden])`);
    if (field) {
      const id = addNote(detail, (note) => (field.closest("label") ?? field).after(note));
      mark(field, "aria-invalid", "true");
      mark(field, "aria-describedby", `${field.getAttribute("aria-describedby") ?? ""} ${id}`.trim());
      first ??= field;
    } else {
      general.push(`${label}: ${detail}`);
    }
  }
  if (!first || general.length) {
    // Only a response has a status. Without one, the server may or may not have received the
    // request.
    const text = status ? message : element.dataset.failed ?? "It may have arrived: look before you send it again.";
    addNote([text, ...general].join(" "), (note) => element.insertAdjacentElement(isForm ? "beforeend" : "afterend", note));
  }
  first?.focus();
}
