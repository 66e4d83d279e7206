// The entry point: starts the script and exports the functions that a page's own script may use.

import { call } from "./calls.js";
import { follow } from "./channels.js";
import { navigate } from "./forms.js";
import { listen } from "./handlers.js";
import { connect, on } from "./stream.js";

listen();
connect();

export { call, follow, navigate, on };
