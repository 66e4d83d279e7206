//! Decides which rooms there may be, what each may see, and what each is forbidden.

/// A folder of `crates/`.
pub(super) struct Room {
    pub(super) folder: &'static str,
    /// The rooms it may depend on, dev-dependencies included; `?` marks one that must be optional.
    pub(super) may_see: &'static [&'static str],
    /// Whether a socket, a clock or a lock must be unnameable in it.
    pub(super) no_std: bool,
    /// The paths within it that may say `unsafe`, as prefixes.
    pub(super) unsafe_in: &'static [&'static str],
}

/// Every room of the plan; one that is not here is refused, one that is not built yet is not missed.
pub(super) const ROOMS: [Room; 15] = [
    Room { no_std: true, ..room("http", &[]) },
    Room { no_std: true, unsafe_in: &["src/buffer.rs"], ..room("html", &["vocabulary"]) },
    Room { no_std: true, ..room("vocabulary", &[]) },
    room("macros", &["vocabulary"]),
    Room { no_std: true, unsafe_in: &["tests/push/counting.rs"], ..room("push", &[]) },
    Room { unsafe_in: &["src/disk"], ..room("store", &[]) },
    room("log", &["http"]),
    room("admission", &[]),
    Room { unsafe_in: &["src/"], ..room("pipeline", &["http", "log", "admission"]) },
    room("files", &["pipeline", "http", "log"]),
    room(
        "bine",
        &[
            "pipeline",
            "log",
            "admission",
            "files",
            "push",
            "html",
            "store",
            "browser",
            "http",
            "macros",
        ],
    ),
    room("browser", &[]),
    room("script", &["bine", "vocabulary"]),
    room("cluster", &["push", "store"]),
    room("cli", &["bine", "script?", "cluster?"]),
];

/// The room of this folder.
pub(super) fn of_folder(folder: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.folder == folder)
}

/// The room a path from the top of the checkout lies in, and the rest of the path.
pub(super) fn of_path(path: &str) -> Option<(&'static Room, &str)> {
    let (folder, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    Some((of_folder(folder)?, rest))
}

impl Room {
    /// The package's name: prefixed, but for the front door.
    pub(super) fn package(&self) -> String {
        if self.folder == "bine" { "bine".to_owned() } else { format!("bine-{}", self.folder) }
    }
}

const fn room(folder: &'static str, may_see: &'static [&'static str]) -> Room {
    Room { folder, may_see, no_std: false, unsafe_in: &[] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_leads_to_a_room() {
        for room in &ROOMS {
            for seen in room.may_see {
                assert!(of_folder(seen.trim_end_matches('?')).is_some(), "{seen}");
            }
        }
    }

    #[test]
    fn a_path_belongs_to_the_room_it_lies_in() {
        let found = of_path("crates/http/src/head.rs").map(|(room, rest)| (room.folder, rest));
        assert_eq!(found, Some(("http", "src/head.rs")));
        assert!(of_path("bench/src/main.rs").is_none());
    }
}
