(function (native) {
  "use strict";
  const { parseUrl, setUrl, query } = native;
  const names = ["href", "protocol", "username", "password", "host", "hostname", "port",
    "pathname", "search", "hash"];
  const update = Symbol();

  class URLSearchParams {
    #list = [];
    #changed = null;
    constructor(init = "") {
      if (typeof init === "object" && init !== null) {
        if (typeof init[Symbol.iterator] === "function") {
          for (const pair of init) {
            const [name, value, ...rest] = pair;
            if (value === undefined || rest.length > 0) throw new TypeError("a pair is expected");
            this.#list.push([`${name}`, `${value}`]);
          }
        } else {
          for (const name of Object.keys(init)) this.#list.push([name, `${init[name]}`]);
        }
      } else {
        this[update](`${init}`);
      }
    }
    [update](text, changed) {
      if (changed) this.#changed = changed;
      this.#list = query(text.startsWith("?") ? text.slice(1) : text);
    }
    #report() {
      this.#changed?.(this.toString());
    }
    get size() {
      return this.#list.length;
    }
    append(name, value) {
      this.#list.push([`${name}`, `${value}`]);
      this.#report();
    }
    delete(name, value) {
      this.#list = this.#list.filter((pair) =>
        pair[0] !== `${name}` || (value !== undefined && pair[1] !== `${value}`));
      this.#report();
    }
    get(name) {
      return this.#list.find((pair) => pair[0] === `${name}`)?.[1] ?? null;
    }
    getAll(name) {
      return this.#list.filter((pair) => pair[0] === `${name}`).map((pair) => pair[1]);
    }
    has(name, value) {
      return this.#list.some((pair) =>
        pair[0] === `${name}` && (value === undefined || pair[1] === `${value}`));
    }
    set(name, value) {
      const first = this.#list.findIndex((pair) => pair[0] === `${name}`);
      if (first < 0) {
        this.#list.push([`${name}`, `${value}`]);
      } else {
        this.#list = this.#list.filter((pair, at) => pair[0] !== `${name}` || at === first);
        this.#list[first][1] = `${value}`;
      }
      this.#report();
    }
    sort() {
      this.#list.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
      this.#report();
    }
    forEach(visit, self) {
      for (const [name, value] of this.#list) visit.call(self, value, name, this);
    }
    *entries() {
      for (const [name, value] of this.#list) yield [name, value];
    }
    *keys() {
      for (const pair of this.#list) yield pair[0];
    }
    *values() {
      for (const pair of this.#list) yield pair[1];
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      return query(this.#list);
    }
  }

  class URL {
    #parts;
    #params = null;
    constructor(text, base) {
      this.#parts = parseUrl(`${text}`, base === undefined ? undefined : `${base}`);
      if (this.#parts === null) throw new TypeError(`Invalid URL: ${text}`);
    }
    static canParse(text, base) {
      return parseUrl(`${text}`, base === undefined ? undefined : `${base}`) !== null;
    }
    static parse(text, base) {
      return URL.canParse(text, base) ? new URL(text, base) : null;
    }
    static {
      for (const name of names) {
        Object.defineProperty(URL.prototype, name, {
          configurable: true,
          enumerable: true,
          get() {
            return this.#parts[name];
          },
          set(value) {
            const parts = setUrl(this.#parts.href, name, `${value}`);
            if (parts === null) {
              if (name === "href") throw new TypeError(`Invalid URL: ${value}`);
              return;
            }
            this.#parts = parts;
            if (name === "href" || name === "search") this.#params?.[update](parts.search);
          },
        });
      }
    }
    get origin() {
      return this.#parts.origin;
    }
    get searchParams() {
      if (this.#params === null) {
        this.#params = new URLSearchParams();
        this.#params[update](this.#parts.search, (text) => {
          this.#parts = setUrl(this.#parts.href, "search", text);
        });
      }
      return this.#params;
    }
    toString() {
      return this.href;
    }
    toJSON() {
      return this.href;
    }
  }
  return { URL, URLSearchParams };
})
