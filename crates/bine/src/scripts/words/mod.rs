//! The built-in modules that scripts import from `bine`, in JavaScript over functions of the host.

use super::{channels, events, fetch, frame, positions, remote, sealed, session, tables, uploads};

/// The text of a built-in module that is written in JavaScript.
pub(super) fn module(name: &str) -> Option<&'static str> {
    Some(match name {
        "bine" => include_str!("bine.js"),
        "bine:start" => include_str!("start.js"),
        // The entry of a script is no built-in module, so that it cannot import an internal one.
        "bine:start-entry" => "export { $start } from \"bine:internal/start\";",
        "bine:runtime" => include_str!("runtime.js"),
        "bine:application" => include_str!("application.js"),
        "bine:internal/channels" => channels::WORDS,
        "bine:internal/answers" => include_str!("answers.js"),
        "bine:internal/browser" => include_str!("browser.js"),
        "bine:internal/context" => include_str!("context.js"),
        "bine:internal/fetch" => fetch::WORDS,
        "bine:internal/forms" => uploads::WORDS,
        "bine:internal/frame" => frame::WORDS,
        "bine:internal/events" => events::WORDS,
        "bine:internal/positions" => positions::WORDS,
        "bine:internal/remote" => remote::WORDS,
        "bine:internal/sealed" => sealed::WORDS,
        "bine:internal/session" => session::WORDS,
        "bine:internal/rows" => tables::ROWS,
        "bine:internal/start" => include_str!("start_script.js"),
        "bine:internal/tables" => tables::WORDS,
        "bine:internal/trees" => include_str!("trees.js"),
        _ => return None,
    })
}
