// Decides how a service is called, and what becomes of its answer or of its problem.

import { added, change, sending } from "./morph.js";

// What takes back the messages of a form or another element.
const complaints = new WeakMap();
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
// or what was wrong.
export async function send(element, button, work) {
  // A button that is disabled loses the focus.
  const isFocused = button && button === document.activeElement;
  let problem;
  for (const undo of complaints.get(element) ?? []) undo();
  complaints.delete(element);
  sending.add(element);
  change(element, "class");
  element.classList.add("is-sending");
  if (button) change(button, "disabled");
  if (button) button.disabled = true;
  try {
    await work();
  } catch (error) {
    problem = error;
  }
  sending.delete(element);
  element.classList.remove("is-sending");
  if (button) button.disabled = false;
  if (isFocused && document.activeElement === document.body) button.focus();
  if (problem) complain(element, problem);
  return !problem;
}

// Tells a problem: at each field that is named, and what is left at the end of the form, or behind another element.
function complain(element, { message, status, errors = [] }) {
  const undo = [];
  complaints.set(element, undo);
  const tell = (text, put) => {
    const note = Object.assign(document.createElement("p"), { className: "problem", role: "alert", id: `problem-${++count}`, textContent: text });
    added.add(note);
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
    // Only an answer has a status; without one the server could not be reached.
    const text = status ? message : element.dataset.failed ?? "The server cannot be reached. Nothing is lost; please try again.";
    tell([text, ...general].join(" "), (note) => (isForm ? element.append(note) : element.after(note)));
  }
  first?.focus();
}
