// Tables: what a script declares, reads and changes. The host checks all arguments.

import { aggregate, change, count, declare, explain, find, group, insert, insertAll, page, remove, select, selectMarkup } from "bine:internal/tables-host";

const getTime = Date.prototype.getTime;

/** A Date, or each Date of an object, as milliseconds. Any other value stays as it is. */
const plain = (value) => {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Date) return milliseconds(value);
  if (value instanceof Uint8Array || Array.isArray(value)) return value;
  let copy;
  for (const key of Object.keys(value)) {
    if (value[key] instanceof Date) (copy ??= { ...value })[key] = milliseconds(value[key]);
  }
  return copy ?? value;
};

const milliseconds = (date) => {
  const time = getTime.call(date);
  if (Number.isNaN(time)) throw new RangeError("a Date is invalid: check how it was made");
  return time;
};

/** A change of tables that failed, or a place of a page that does not exist. */
export class TableError extends Error {
  constructor({ failure, message, errors }) {
    super(message);
    this.reason = failure;
    this.errors = errors;
  }
}
Object.defineProperty(TableError.prototype, "name", { value: "TableError", configurable: true, writable: true });

/** The result of a host function, which returns a failure instead of throwing it. */
const done = (result) => {
  if (result?.failure !== undefined) throw new TableError(result);
  return result;
};

/** A column of a table. Each modifier returns a new column. */
class Column {
  #spec;

  constructor(spec) {
    this.#spec = spec;
  }

  static spec(column) {
    return typeof column === "object" && column !== null && #spec in column ? column.#spec : null;
  }

  #with(change) {
    return new Column({ ...this.#spec, ...change });
  }

  index() { return this.#with({ index: true }); }
  unique() { return this.#with({ unique: true }); }
  optional() { return this.#with({ optional: true }); }
  private() { return this.#with({ private: true }); }
  min(least) { return this.#with({ min: least ?? null }); }
  max(most) { return this.#with({ max: most ?? null }); }
  default(value) { return this.#with({ default: plain(value) ?? null }); }
  label(text) { return this.#with({ label: text ?? null }); }
  was(name) { return this.#with({ was: name ?? null }); }
  onRemove(effect) { return this.#with({ onRemove: effect ?? null }); }
}

export const text = () => new Column({ kind: "text" });
export const number = () => new Column({ kind: "number" });
export const integer = () => new Column({ kind: "integer" });
export const boolean = () => new Column({ kind: "boolean" });
export const bytes = () => new Column({ kind: "bytes" });
export const time = () => new Column({ kind: "time" });
export const now = () => new Column({ kind: "now" });
export const choice = (...words) => new Column({ kind: "choice", words });
export const ref = (to) => new Column({ kind: "reference", to: Table.nameOf(to) ?? to ?? null });

/** Rows of a table that satisfy conditions, in an order. A query reads when its result is asked for. */
class Query {
  #table;
  #conditions;
  #order;
  #isDescending;

  constructor(table, conditions, order, isDescending) {
    this.#table = table;
    this.#conditions = conditions;
    this.#order = order;
    this.#isDescending = isDescending;
  }

  /** The rows that a method of a query returns, as markup of a row template or as a list; undefined if
   * `query` is no query, or has another method. See `$rows`. */
  static markup(query, method, limit, row, a, b, c, d) {
    if (!(#table in query) || query[method] !== methods[method]) return undefined;
    const table = query.#table, conditions = query.#conditions;
    if (method === "newest" || method === "oldest") {
      if (query.#order !== null) return undefined;
      return selectMarkup(table, conditions, null, method === "newest", limit ?? null, method, row, a, b, c, d);
    }
    // `map` is that of all rows.
    const own = method === "list" ? method : "all";
    const most = own === "list" ? limit ?? null : null;
    return selectMarkup(table, conditions, query.#order, query.#isDescending, most, own, row, a, b, c, d);
  }

  by(column, value) {
    if (value === undefined) throw new TypeError(`by(${JSON.stringify(column)}, undefined): give a value, or null for rows without one`);
    return new Query(this.#table, [...this.#conditions, column, plain(value)], this.#order, this.#isDescending);
  }

  where(conditions) {
    if (typeof conditions !== "object" || conditions === null) {
      throw new TypeError("where takes an object with the conditions on columns, like { forum: \"Ubuntu\" }");
    }
    let query = this;
    for (const column of Object.keys(conditions)) query = query.by(column, conditions[column]);
    return query;
  }

  orderBy(column, direction = "ascending") {
    if (direction !== "ascending" && direction !== "descending") {
      throw new TypeError("orderBy(column, direction): the direction is \"ascending\" or \"descending\"");
    }
    return new Query(this.#table, this.#conditions, column, direction === "descending");
  }

  #byAge(method, isDescending, limit) {
    if (this.#order !== null) throw new TypeError(`${method}(n) has its own order: write list(n) after orderBy`);
    return select(this.#table, this.#conditions, null, isDescending, limit ?? null, method);
  }

  newest(limit) { return this.#byAge("newest", true, limit); }
  oldest(limit) { return this.#byAge("oldest", false, limit); }

  list(limit) {
    return select(this.#table, this.#conditions, this.#order, this.#isDescending, limit ?? null, "list");
  }

  all() {
    return select(this.#table, this.#conditions, this.#order, this.#isDescending, null, "all");
  }

  map(each) {
    return this.all().map(each);
  }

  [Symbol.iterator]() {
    return this.all()[Symbol.iterator]();
  }

  first() {
    return select(this.#table, this.#conditions, this.#order, this.#isDescending, 1, "first");
  }

  count() {
    return count(this.#table, this.#conditions, this.#order);
  }

  sum(column) { return aggregate(this.#table, this.#conditions, null, false, "sum", column); }
  average(column) { return aggregate(this.#table, this.#conditions, null, false, "average", column); }
  min(column) { return aggregate(this.#table, this.#conditions, null, false, "min", column); }
  max(column) { return aggregate(this.#table, this.#conditions, null, false, "max", column); }

  groupBy(column) {
    return new Groups(this.#table, this.#conditions, column);
  }

  page(options) {
    if (typeof options !== "object" || options === null) {
      throw new TypeError("page takes an object, like { size: 20, after: query.after, before: query.before }");
    }
    return done(page(this.#table, this.#conditions, this.#order, this.#isDescending, options));
  }

  explain() {
    return explain(this.#table, this.#conditions, this.#order, this.#isDescending);
  }
}

const { all, list, map, newest, oldest } = Query.prototype;
const methods = { __proto__: null, all, list, map, newest, oldest };
const { markup } = Query;

/** See `Query.markup`. */
export const queryMarkup = markup;

/** The rows of a query by the values of a column. Each result is a list of pairs of a value and a figure. */
class Groups {
  #table;
  #conditions;
  #by;

  constructor(table, conditions, by) {
    this.#table = table;
    this.#conditions = conditions;
    this.#by = by;
  }

  count() { return group(this.#table, this.#conditions, null, false, this.#by, null, null); }
  sum(column) { return group(this.#table, this.#conditions, null, false, this.#by, "sum", column); }
  average(column) { return group(this.#table, this.#conditions, null, false, this.#by, "average", column); }
  min(column) { return group(this.#table, this.#conditions, null, false, this.#by, "min", column); }
  max(column) { return group(this.#table, this.#conditions, null, false, this.#by, "max", column); }
}

/** A table of the application, which is the query for all of its rows. */
class Table extends Query {
  #slot;
  #name;

  constructor(slot, name) {
    super(slot, [], null, false);
    this.#slot = slot;
    this.#name = name;
  }

  static nameOf(table) {
    return typeof table === "object" && table !== null && #name in table ? table.#name : null;
  }

  get(id) {
    return find(this.#slot, id);
  }

  insert(values) {
    return done(insert(this.#slot, plain(values)));
  }

  insertAll(list) {
    return done(insertAll(this.#slot, Array.isArray(list) ? list.map(plain) : list));
  }

  update(id, values) {
    done(change(this.#slot, id, plain(values)));
  }

  remove(id) {
    return done(remove(this.#slot, id));
  }
}

export const table = (name, columns, options) => {
  if (typeof columns !== "object" || columns === null) {
    throw new TypeError("table takes a name and columns, like table(\"messages\", { body: text() })");
  }
  const specs = Object.keys(columns).map((column) => [column, Column.spec(columns[column])]);
  return new Table(declare(name, specs, options ?? null), name);
};
