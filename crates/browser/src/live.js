// The entry point: starts the script and exports the functions that a page's own script may use.

import { call } from "./calls.js";
import { listen } from "./handlers.js";
import { connect, on } from "./stream.js";

listen();
connect();

export { call, on };
