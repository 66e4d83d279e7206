//! Rule: the web core of `bine` names no subsystem, and a subsystem names only those below it.
//!
//! A subsystem is a top-level module of `crates/bine/src`. Every other module belongs to the core,
//! except those that put the library together.

use std::collections::BTreeMap;

use super::modules::root_edges;
use super::{Complaint, Tree};

/// The crate that has the subsystems.
const CRATE: &str = "crates/bine/src";

/// Each subsystem, with the subsystems that it may use.
const SUBSYSTEMS: [(&str, &[&str]); 22] = [
    ("accounts", &["sessions"]),
    ("acme", &["remote"]),
    ("admission", &["sessions"]),
    ("api_tokens", &["sessions"]),
    ("browser_files", &[]),
    ("channels", &["sessions", "shared_state", "websocket"]),
    ("cluster", &[]),
    ("compression", &[]),
    ("data_browser", &["sessions"]),
    ("data_move", &["channels", "cluster", "sessions", "shared_state"]),
    ("live", &["channels", "sessions", "shared_state"]),
    ("metrics", &[]),
    ("profile", &[]),
    ("proxy", &["remote"]),
    ("remote", &[]),
    ("rights", &[]),
    ("schedule", &[]),
    ("scripts", &["channels", "live", "remote", "rights", "sessions"]),
    ("sessions", &[]),
    ("shared_state", &[]),
    ("stage_trace", &[]),
    ("websocket", &[]),
];

/// The modules that may use all: re-exports, and the tests of programs.
const ASSEMBLY: [&str; 2] = ["prelude", "test"];

/// Reports each import of a subsystem from where it is not allowed.
pub(super) fn check(tree: &Tree, complaints: &mut Vec<Complaint>) {
    let edges = root_edges(tree, CRATE);
    let subsystems: BTreeMap<&str, &[&str]> = SUBSYSTEMS.into_iter().collect();
    for (from, to) in &edges {
        if ASSEMBLY.contains(&&**from) {
            continue;
        }
        let allowed = subsystems.get(&**from);
        for (to, example) in to {
            let is_allowed =
                !subsystems.contains_key(&**to) || allowed.is_some_and(|all| all.contains(&&**to));
            if is_allowed {
                continue;
            }
            let what = match allowed {
                Some(_) => format!(
                    "the subsystem {from} may not use {to}: {example}; see xtask/src/tidy/subsystems.rs"
                ),
                None => format!(
                    "{from} is part of the web core, which names no subsystem: {example}; see crates/bine/src/subsystem.rs"
                ),
            };
            complaints.push(Complaint { path: CRATE.to_owned(), line: 0, what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check as check_rule;
    use super::*;

    #[test]
    fn accepts_subsystems_that_use_the_core_and_those_below() {
        check_rule(
            check,
            &[
                ("crates/bine/src/lib.rs", "mod app;\npub use live::Live;\n"),
                ("crates/bine/src/app.rs", "use crate::route::Route;\n"),
                ("crates/bine/src/live/mod.rs", "use crate::{app::App, channels::Engine};\n"),
                ("crates/bine/src/channels.rs", "use crate::sessions::Login;\n"),
                ("crates/bine/src/sessions.rs", ""),
                ("crates/bine/src/prelude.rs", "pub use crate::live::Live;\n"),
                ("crates/bine/src/route.rs", ""),
            ],
            &[],
        );
    }

    #[test]
    fn reports_a_core_that_uses_a_subsystem_and_a_subsystem_that_uses_one_above() {
        check_rule(
            check,
            &[
                ("crates/bine/src/app.rs", "fn f() { crate::live::start() }\n"),
                ("crates/bine/src/live/mod.rs", ""),
                ("crates/bine/src/sessions/row.rs", "use crate::live::Live;\n"),
            ],
            &[
                "crates/bine/src: app is part of the web core, which names no subsystem: app uses live::start; see crates/bine/src/subsystem.rs",
                "crates/bine/src: the subsystem sessions may not use live: sessions::row uses live::Live; see xtask/src/tidy/subsystems.rs",
            ],
        );
    }
}
