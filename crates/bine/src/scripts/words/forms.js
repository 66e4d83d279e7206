// The words of forms: files that visitors send, and messages at the fields of a form.
import { Answer } from "bine:internal/answers";
import { read, save } from "bine:internal/uploads";

// Only this module has it.
const MADE = Symbol("made");

/** A file that a visitor has sent to a service. */
export class Upload {
  #file;
  constructor(made, file) {
    if (made !== MADE) {
      throw new TypeError(
        "an `Upload` comes with a form: service((ctx, { picture }: { picture: Upload }) => ..)",
      );
    }
    this.#file = file;
  }
  /** The last part of the file's name on the computer of the visitor, or an empty text. */
  get name() {
    return this.#file.name;
  }
  /** The media type that the browser has sent. */
  get type() {
    return this.#file.type;
  }
  /** The number of bytes. */
  get size() {
    return this.#file.size;
  }
  bytes() {
    const { $upload: number, size } = this.#file;
    const bytes = new Uint8Array(size);
    // The content passes in parts, each within the limits of a value.
    for (let at = 0; at < size; ) {
      const part = read(number, at);
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }
  text() {
    return new TextDecoder().decode(this.bytes());
  }
  /** Saves the file in the folder `public` of the application. */
  async save(path) {
    if (typeof path !== "string") {
      throw new TypeError('`save` takes a path in the folder `public`, as in save("pictures/1.png")');
    }
    await save(this.#file.$upload, path);
  }
}

const isFile = (value) => value !== null && typeof value === "object" && "$upload" in value;

/** The arguments of a service, with an `Upload` for each file. The host passes files only for a form,
 * which has no other objects. */
export function withUploads(values) {
  const upload = (value) => (isFile(value) ? new Upload(MADE, value) : value);
  const result = {};
  for (const [name, value] of Object.entries(values)) {
    result[name] = Array.isArray(value) ? value.map(upload) : upload(value);
  }
  return result;
}

/** Rejects a form, with a message at each of these fields. */
export function invalid(fields) {
  const help = '`invalid` takes the messages by the names of the fields: invalid({ name: "must not be empty" })';
  if (fields === null || typeof fields !== "object" || Array.isArray(fields)) throw new TypeError(help);
  const errors = Object.entries(fields).filter(([, message]) => message !== undefined);
  if (errors.length === 0) throw new TypeError(`${help}; there is no message`);
  for (const [name, message] of errors) {
    if (typeof message !== "string") throw new TypeError(`${help}; that of \`${name}\` is no string`);
  }
  const message = errors.map(([name, reason]) => `\`${name}\` ${reason}`).join("; ");
  return new Answer({ $status: 422, message, errors });
}
