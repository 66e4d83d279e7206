// Decides how a service is called, and what becomes of its answer or of its problem.

import { change, sending } from "./morph.js";

// What takes back the messages of a form or another element.
const complaints = new WeakMap();
// What lets the newest that waits for each element go on, or gives it up.
const waiting = new WeakMap();
let count = 0;

// Calls a service with arguments by name. What it returns comes back; a problem is an Error with `status`, `detail` and
// `errors`, one for each argument that is wrong: `{ name, detail }`.
export async function call(url, args = {}) {
  const headers = { Accept: "application/json", "Content-Type": "application/json" };
  return result(await fetch(url, { method: "POST", headers, body: JSON.stringify(args) }));
}

// What a service has answered (problems as RFC 9457 has them).
export async function result(answer) {
  const isJson = /\bjson\b/.test(answer.headers.get("Content-Type"));
  const value = isJson ? await answer.json() : undefined;
  if (answer.ok) return value;
  const { title, detail, errors } = value ?? {};
  const text = detail ?? title ?? `${answer.status} ${answer.statusText}`;
  throw Object.assign(new Error(text), { status: answer.status, detail, errors });
}

// Does something that is sent from an element, by a button perhaps, and shows that meanwhile; then whether it went well,
// or what was wrong. One is under way for each element, and the newest waits; a button is not pressed twice.
export async function send(element, button, work) {
  if (sending.has(element)) {
    waiting.get(element)?.(false);
    if (button || !(await new Promise((resolve) => waiting.set(element, resolve)))) return false;
    waiting.delete(element);
  }
  // A button that is disabled loses the focus.
  const isFocused = button && button === document.activeElement;
  for (const undo of complaints.get(element) ?? []) undo();
  complaints.delete(element);
  sending.add(element);
  change(element, "class");
  element.classList.add("is-sending");
  if (button) change(button, "disabled");
  if (button) button.disabled = true;
  const problem = await work().then(() => {}, (error) => error);
  sending.delete(element);
  element.classList.remove("is-sending");
  if (button) button.disabled = false;
  if (isFocused && document.activeElement === document.body) button.focus();
  if (problem) complain(element, problem);
  waiting.get(element)?.(true);
  return !problem;
}

// Tells a problem: at each field that is named, and what is left at the end of the form, or behind another element.
function complain(element, { message, status, errors = [] }) {
  const undo = [];
  complaints.set(element, undo);
  const tell = (text, put) => {
    const note = Object.assign(document.createElement("p"), { className: "problem", role: "alert", id: `problem-${++count}`, textContent: text, isOurs: true });
    put(note);
    undo.push(() => note.remove());
    return note.id;
  };
  const mark = (field, name, value) => {
    const before = field.getAttribute(name);
    change(field, name);
    field.setAttribute(name, value);
    undo.push(() => (before === null ? field.removeAttribute(name) : field.setAttribute(name, before)));
  };
  const isForm = element.localName === "form";
  const general = [];
  let first;
  for (const { name, detail } of errors) {
    const field = isForm && element.querySelector(`[name="${CSS.escape(name)}"]:not([type=hidden])`);
    if (field) {
      const id = tell(detail, (note) => (field.closest("label") ?? field).after(note));
      mark(field, "aria-invalid", "true");
      mark(field, "aria-describedby", `${field.getAttribute("aria-describedby") ?? ""} ${id}`.trim());
      first ??= field;
    } else {
      general.push(`${name}: ${detail}`);
    }
  }
  if (!first || general.length) {
    // Only an answer has a status; without one nobody knows how far it came.
    const text = status ? message : element.dataset.failed ?? "It may have arrived: look before you send it again.";
    tell([text, ...general].join(" "), (note) => element.insertAdjacentElement(isForm ? "beforeend" : "afterend", note));
  }
  first?.focus();
}
