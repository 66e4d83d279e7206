// The reference implementation of `bine:runtime`, the module that generated code imports.
//
// It is the specification in code: a native implementation must give the same bytes and reject the
// same values. It is not fast. The tests run all generated code with it and compare it with the
// writers of the crate `html`.

/** The key under which a service carries its URL. */
const URL_OF_SERVICE = Symbol.for("bine.url");

/** Arrays in arrays, at most. */
const MAX_DEPTH = 64;

/** Markup. Only `$html` and `$live` make it, so it is always escaped; a string never counts as it. */
class Html {
  #markup;
  constructor(markup) {
    this.#markup = markup;
    Object.freeze(this);
  }
  static markup(html) {
    return html.#markup;
  }
  toString() {
    throw new TypeError("markup is no text: put it into a hole, `{markup}`");
  }
}

/** Trusted text: see `raw`. */
class Raw {
  #text;
  constructor(text) {
    this.#text = text;
    Object.freeze(this);
  }
  static text(raw) {
    return raw.#text;
  }
}

/** The constants and the kinds of holes of one piece of markup. */
class Template {
  #pieces;
  #holes;
  constructor(pieces, holes) {
    this.#pieces = pieces;
    this.#holes = holes;
    Object.freeze(this);
  }
  static fill(template, values) {
    let html = template.#pieces[0];
    let next = 0;
    template.#holes.forEach((hole, index) => {
      if (hole === "h") html += headMarkup;
      else html += filled(hole, values[next++]);
      html += template.#pieces[index + 1];
    });
    return html;
  }
}

/** The markup that the server adds at the end of the `<head>`. */
let headMarkup = "";
export const setHeadMarkup = (markup) => void (headMarkup = markup);

export const $markup = (pieces, holes) => new Template(pieces, holes);

export const $html = (template, ...values) => new Html(Template.fill(template, values));

export const $row = () => null;

/** A list of rows, without its row template: see the contract. */
export const $rows = (_row, list, method, limit, each) => {
  if (method === "map") return list.map(each);
  return (method === "all" ? list.all() : list[method](limit)).map(each);
};

/** A tree: here only its markup. The engine of the server builds nodes, which have the same markup. */
export const $shape = (steps) => Object.freeze(steps);

export function $tree(shape, ...values) {
  const open = [];
  let html = "";
  let tag = null;
  let next = 0;
  const endTag = () => {
    if (tag !== null) html += `<${tag}${VOID.includes(open.at(-1)) ? " /" : ""}>`;
    tag = null;
  };
  for (const step of shape) {
    const rest = step.slice(1);
    if (step[0] === ".") {
      const [name] = rest.split(" ", 1);
      tag += ` ${name}="${escaped(rest.slice(name.length + 1))}"`;
    } else if ("alipcs".includes(step[0])) {
      tag += filled(step, values[next++]);
    } else {
      endTag();
      if (step[0] === "<") open.push((tag = rest));
      else if (step[0] === "'") html += escaped(rest);
      else if (step[0] === '"') html += rest;
      else if (step[0] === "!") html += "<!DOCTYPE html>";
      else if (step[0] !== ">") html += filled(step, values[next++]);
      else {
        const name = open.pop();
        if (name === "head") html += headMarkup;
        if (!VOID.includes(name)) html += `</${name}>`;
      }
    }
  }
  return new Html(html);
}

/** The word `tree` of `bine`: its markup is compiled to `$tree`. */
export const tree = (content) => $tree(["t"], content);

const VOID = [
  "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
];

/** A region without marks: the host adds them, and records the reads in `content`. */
export const $live = (_hash, content) => content();

export function raw(text) {
  if (typeof text !== "string") throw new TypeError("`raw` takes a string");
  return new Raw(text.toWellFormed());
}

/** The markup of a page, for the host and for tests. */
export function markupOf(html) {
  if (!(html instanceof Html)) throw new TypeError("a page returns markup");
  return Html.markup(html);
}

/** The markup of one hole. */
function filled(hole, value) {
  const name = hole.slice(1);
  switch (hole[0]) {
    case "t":
      return text(value, true, 0);
    case "u":
      return text(value, false, 0);
    case "x":
      if (value instanceof Raw) return Raw.text(value);
      throw new TypeError(
        "text cannot be made safe in a script or a style: wrap it in `raw(..)` if it is trusted",
      );
    case "s":
      return spread(name, value);
    case "v":
      return captured(name, value);
    default:
      return attribute(hole[0], name, value);
  }
}

/** A value in text. */
function text(value, takesMarkup, depth) {
  switch (typeof value) {
    case "string":
      return escaped(value.toWellFormed());
    case "number":
      return decimal(value);
    case "bigint":
      return value.toString();
    case "undefined":
    case "boolean":
      return "";
  }
  if (value === null) return "";
  if (value instanceof Html || value instanceof Raw) {
    if (!takesMarkup) throw new TypeError("no markup is allowed here, only text is");
    return value instanceof Html ? Html.markup(value) : disarmed(Raw.text(value));
  }
  if (Array.isArray(value)) {
    if (depth >= MAX_DEPTH) throw new TypeError(`lists are nested more than ${MAX_DEPTH} deep`);
    return value.map((one) => text(one, takesMarkup, depth + 1)).join("");
  }
  throw new TypeError(
    `${described(value)} is not a value for a hole: it takes text, numbers, markup, and lists of these`,
  );
}

/** An attribute with its name, or nothing. */
function attribute(kind, name, value) {
  if (value === null || value === undefined || value === false) return "";
  const [opening, closing] = [` ${name}="`, '"'];
  if (kind === "c") {
    if (value instanceof Raw) return opening + escaped(Raw.text(value)) + closing;
    throw new TypeError(
      "text cannot be made safe in an event handler, in `style` or in `srcdoc`: put it into a `data-*` " +
        "attribute, or wrap it in `raw(..)` if it is trusted",
    );
  }
  const write = (text) => {
    const wellFormed = text.toWellFormed();
    return opening + (kind === "a" ? escaped(wellFormed) : url(wellFormed, kind === "i")) + closing;
  };
  switch (typeof value) {
    case "string":
      return write(value);
    case "number":
      return opening + decimal(value) + closing;
    case "bigint":
      return opening + value.toString() + closing;
    case "boolean":
      return opening + closing;
  }
  if (value instanceof Raw && kind !== "a") return opening + escaped(Raw.text(value)) + closing;
  if (Array.isArray(value)) {
    const words = value.filter((one) => one !== null && one !== undefined && one !== false);
    if (!words.every((one) => typeof one === "string")) {
      throw new TypeError(`a list in the attribute \`${name}\` takes strings only`);
    }
    return words.length > 0 ? write(words.join(" ")) : "";
  }
  if (kind !== "a" && typeof value === "function" && typeof value[URL_OF_SERVICE] === "string") {
    return write(value[URL_OF_SERVICE]) + (kind === "p" ? ' method="post"' : "");
  }
  throw new TypeError(
    `${described(value)} is not a value for the attribute \`${name}\`: it takes text, numbers and booleans`,
  );
}

/** A function of the browser: the result of `browser(..)`. */
class BrowserFunction {
  #json;
  constructor(json) {
    this.#json = json;
    Object.freeze(this);
  }
  static json(value) {
    return typeof value === "object" && value !== null && #json in value ? value.#json : undefined;
  }
}

/** The compiler replaces the function in `browser(..)` by its place and the values that it captures. */
export function browser(url, index, now, values, places) {
  return new BrowserFunction(`[${JSON.stringify(url)},${index},${now},${capturedJson(places, values)}]`);
}

/** A handler that is known when the page is rendered, for its attribute. */
export function $handler(value) {
  if (value === null || value === undefined || value === false) return null;
  const json = BrowserFunction.json(value);
  if (json === undefined) throw new TypeError(`${described(value)} is no handler: write \`browser(..)\` around the function`);
  return json;
}

/** The values that the handlers of an element capture. `places`: a line for each, `12:5 message.id`. */
function captured(places, values) {
  // JSON has many double quotes.
  return ` data-with='${capturedJson(places, values).replace(/[&<']/g, (special) => REFERENCES[special])}'`;
}

function capturedJson(places, values) {
  const plain = (value, depth) => {
    if (value === null || ["boolean", "string", "undefined"].includes(typeof value) || Number.isFinite(value)) return;
    const isArray = Array.isArray(value);
    if (depth >= 16 || (!isArray && Object.getPrototypeOf(value) !== Object.prototype)) {
      throw new TypeError("is no plain data");
    }
    Object.values(value).forEach((one) => plain(one, depth + 1));
  };
  if (places) places.split("\n").forEach((line, index) => {
    const [place, name] = line.split(" ");
    try {
      plain(values[index], 0);
    } catch (error) {
      throw new TypeError(`the handler at ${place} uses \`${name}\`, which ${error.message}`);
    }
  });
  // JSON has no `undefined`: a missing key of an object is that.
  const hasGaps = values.includes(undefined);
  return JSON.stringify(hasGaps ? { ...values } : values).toWellFormed();
}

/** The attributes of an object, except those that are written. `names`: the element, then those. */
function spread(names, value) {
  if (value === null || value === undefined || value === false) return "";
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new TypeError(`${described(value)} is no object of attributes`);
  }
  const [element, ...written] = names.split(" ").map((name) => name.toLowerCase());
  let html = "";
  for (const [name, one] of Object.entries(value)) {
    const lower = name.toLowerCase();
    if (lower === "children") throw new TypeError("`children` are no attribute: `{children}` between the tags");
    if (!/^[^\s\p{Cc}"'<>/=&]+$/u.test(name) || name.toWellFormed() !== name) {
      throw new TypeError(`\`${name.toWellFormed()}\` is no name of an attribute`);
    }
    if (!written.includes(lower)) html += attribute(kindOf(element, lower), name, one);
  }
  return html;
}

const ADDRESSES = [
  "action", "cite", "data", "formaction", "href", "manifest", "ping", "poster", "src", "background",
  "codebase", "longdesc", "profile",
];
const IMAGES = ["feimage", "image", "img", "input"];

/** How a browser uses an attribute: `vocabulary::Context::of`. */
function kindOf(element, name) {
  const local = name.slice(name.lastIndexOf(":") + 1);
  if (/^on[a-z0-9]+$/.test(name) || local === "style" || local === "srcdoc") return "c";
  if (!ADDRESSES.includes(local)) return "a";
  if (local === "poster" || (IMAGES.includes(element) && local !== "formaction")) return "i";
  return "l";
}

const REFERENCES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

const escaped = (text) => text.replace(/[&<>"']/g, (special) => REFERENCES[special]);

/** A URL, or an invalid one in place of one that a browser would run (`html::UrlFilter`). */
function url(text, isImage) {
  // Leading controls and spaces, and tabs and line ends anywhere, as a browser ignores them.
  const plain = (start) => start.replace(/[\t\n\r]/g, "").replace(/^[\0-\x20]+/, "");
  const seen = plain(text);
  const lower = seen.toLowerCase();
  const isImageData = isImage && lower.startsWith("data:image/");
  if (!isImageData && /^(javascript|vbscript|data):/.test(lower)) return "about:invalid#refused";
  // The start up to the character that decided is written without what a browser ignores.
  const prefixes = ["javascript:", "vbscript:", "data:"].concat(isImage ? ["data:image/"] : []);
  let held = "";
  for (let index = 0; index < text.length; index++) {
    const letter = text[index];
    if (/[\t\n\r]/.test(letter) || (held === "" && letter <= " ")) continue;
    const longer = held + letter;
    const isOpen = prefixes.some(
      (prefix) => prefix !== longer.toLowerCase() && prefix.startsWith(longer.toLowerCase()),
    );
    const isData = isImage && longer.toLowerCase() === "data:";
    if (!isOpen && !isData) return escaped(held + text.slice(index));
    held = longer;
  }
  return held;
}

/** Trusted markup without the attribute `data-on`, which only the source may define (`html::raw`). */
function disarmed(markup) {
  return markup.replace(/-/g, (hyphen, at) => {
    const before = markup.slice(Math.max(0, at - 5), at).toLowerCase();
    const after = markup.slice(at + 1, at + 4).toLowerCase();
    const isData = at < 4 ? "data".endsWith(before) : /^(|[ \t\n\f\r/"'])data$/.test(before);
    const isOn = after.length < 2 ? "on".startsWith(after) : /^on($|[ \t\n\f\r/>=])/.test(after);
    return isData && isOn ? "&#45;" : hyphen;
  });
}

/** A number as `Display` of Rust's `f64` writes it: without an exponent. Of two shortest decimals that
 * are equally near, the engine's. */
function decimal(number) {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "NaN" : number > 0 ? "inf" : "-inf";
  const text = Object.is(number, -0) ? "-0" : String(number);
  const [, sign, whole, fraction = "", exponent] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(text);
  if (exponent === undefined) return text;
  const digits = whole + fraction;
  const point = whole.length + Number(exponent);
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  return sign + digits.padEnd(point, "0");
}

function described(value) {
  if (typeof value === "function") return "a function";
  if (typeof value === "symbol") return "a symbol";
  if (value instanceof Promise) return "a promise (write `{await ..}`)";
  if (value instanceof Html) return "markup";
  return "an object";
}
