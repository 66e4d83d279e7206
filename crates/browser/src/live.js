// Decides what a page's own script may use, and begins.

import { connect, on } from "./stream.js";

connect();

export { on };
