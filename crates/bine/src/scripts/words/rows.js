// Lists of rows in markup: a row template of the compiler writes them in the host.
import { $fillRows } from "bine:internal/markup";
import { queryMarkup } from "bine:internal/tables";

const { isArray, prototype } = Array;
const { map } = prototype;
const { species } = Symbol;

/** Whether the program has left `map` of arrays as it is. */
const isIntact = () =>
  prototype.map === map && prototype.constructor === Array && Array[species] === Array;

/** `list.map(each)`, or `list[method](limit).map(each)`, for a callback whose markup the row template
 * `row` writes with the values that it has captured. The callback runs only if the host cannot write
 * the rows in the same way. */
export const $rows = (row, list, method, limit, each, a, b, c, d) => {
  if (typeof list === "object" && list !== null && isIntact()) {
    if (isArray(list)) {
      const markup = method === "map" ? $fillRows(row, list, prototype, a, b, c, d) : undefined;
      if (markup !== undefined) return markup;
    } else {
      const found = queryMarkup(list, method, limit, row, a, b, c, d);
      if (found !== undefined) return isArray(found) ? found.map(each) : found;
    }
  }
  if (method === "map") return list.map(each);
  return (method === "all" ? list.all() : list[method](limit)).map(each);
};
