// Decides what a page's own script may use, and begins.

import { call } from "./calls.js";
import { attend } from "./handlers.js";
import { connect, on } from "./stream.js";

attend();
connect();

export { call, on };
