enum Color { Red, Green }
export const enum Size { Small = 1 }
namespace Values { export const one = 1; }
class Point {
  constructor(private x: number, readonly y: number) {}
  accessor z = 1;
}
import fs = require("fs");
@decorated class Marked {}
