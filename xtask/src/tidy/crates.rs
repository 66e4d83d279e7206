//! The crates of the workspace, their allowed dependencies and restrictions.

use std::collections::{BTreeMap, BTreeSet};

use super::{Complaint, Tree};

/// The page that shows the table.
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// A folder of `crates/`.
pub(super) struct Crate {
    pub(super) folder: &'static str,
    /// The crates it may depend on, dev-dependencies included; `?` marks one that must be optional.
    pub(super) may_see: &'static [&'static str],
    /// Whether the crate is `no_std`, so that it cannot name a socket, a clock or a lock.
    pub(super) no_std: bool,
    /// Prefixes of the paths in the crate that may use `unsafe`.
    pub(super) unsafe_in: &'static [&'static str],
}

/// Every planned crate. Tidy rejects an unlisted crate; a listed one need not exist yet.
pub(super) const CRATES: [Crate; 21] = [
    Crate { no_std: true, ..entry("http", &[]) },
    Crate { no_std: true, unsafe_in: &["src/buffer.rs"], ..entry("html", &["vocabulary"]) },
    Crate { no_std: true, ..entry("vocabulary", &[]) },
    entry("markup", &["vocabulary"]),
    entry("macros", &["markup", "tsx?", "vocabulary"]),
    Crate {
        unsafe_in: &["examples/measure_tsx.rs"],
        ..entry("tsx", &["markup", "vocabulary", "html"])
    },
    Crate { no_std: true, unsafe_in: &["tests/push/allocator.rs"], ..entry("push", &[]) },
    Crate { unsafe_in: &["src/disk"], ..entry("store", &["html?"]) },
    entry("log", &["http"]),
    entry("admission", &[]),
    Crate { unsafe_in: &["src/"], ..entry("server", &["http", "log", "admission", "profile"]) },
    entry("files", &["server", "http", "log"]),
    entry("client", &["http"]),
    entry(
        "bine",
        &[
            "server",
            "log",
            "admission",
            "files",
            "client",
            "push",
            "html",
            "store",
            "browser",
            "http",
            "macros",
            "script?",
            "tsx?",
            "cluster?",
            "compression?",
            "nats-server",
            "profile",
        ],
    ),
    entry("browser", &[]),
    Crate { unsafe_in: &["src/quickjs"], ..entry("script", &["html", "vocabulary"]) },
    entry("cluster", &["nats-server"]),
    entry("compression", &["http"]),
    entry("nats-server", &[]),
    Crate { unsafe_in: &["src/allocator.rs", "src/stack.rs"], ..entry("profile", &[]) },
    entry("cli", &["bine", "nats-server", "profile"]),
];

/// The crate of this folder.
pub(super) fn of_folder(folder: &str) -> Option<&'static Crate> {
    CRATES.iter().find(|entry| entry.folder == folder)
}

/// The crate of a path from the root of the checkout, and the rest of the path.
pub(super) fn of_path(path: &str) -> Option<(&'static Crate, &str)> {
    let (folder, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    Some((of_folder(folder)?, rest))
}

/// Reports each difference between this table and the one in ARCHITECTURE.md.
pub(super) fn check_architecture(tree: &Tree, complaints: &mut Vec<Complaint>) {
    let Some(page) = tree.file(ARCHITECTURE) else { return };
    let mut shown = BTreeMap::new();
    for (line, text) in (1..).zip(page.text.lines()) {
        let Some(row) = text.strip_prefix("| crates/") else { continue };
        let cells: Vec<&str> = row.trim_end_matches([' ', '|']).split('|').map(str::trim).collect();
        let (Some(name), Some(list)) = (cells.first(), cells.last()) else { continue };
        let list = list.split(", ").filter(|needed| *needed != "-");
        shown.insert(*name, (line, list.collect::<BTreeSet<_>>()));
    }
    let exists = |folder: &str| tree.file(&format!("crates/{folder}/Cargo.toml")).is_some();
    for entry in CRATES.iter().filter(|entry| exists(entry.folder)) {
        let all = entry.may_see.iter().map(|seen| seen.trim_end_matches('?'));
        let all: BTreeSet<&str> = all.filter(|seen| exists(seen)).collect();
        match shown.remove(entry.folder) {
            Some((_, list)) if list == all => {}
            Some((line, _)) => {
                let all = all.into_iter().collect::<Vec<_>>().join(", ");
                let what = format!("crates/{} may depend on: {all}", entry.folder);
                page.complain(complaints, line, what);
            }
            None => {
                let what = format!("the table of crates lacks crates/{}", entry.folder);
                page.complain(complaints, 0, what);
            }
        }
    }
    for (name, (line, _)) in shown {
        page.complain(complaints, line, format!("there is no crates/{name}"));
    }
}

impl Crate {
    /// The name of the package. Only the crate that users depend on has no prefix.
    pub(super) fn package(&self) -> String {
        if self.folder == "bine" { "bine".to_owned() } else { format!("bine-{}", self.folder) }
    }
}

const fn entry(folder: &'static str, may_see: &'static [&'static str]) -> Crate {
    Crate { folder, may_see, no_std: false, unsafe_in: &[] }
}

#[cfg(test)]
mod tests {
    use super::super::check as check_rule;
    use super::*;

    #[test]
    fn compares_the_table_with_architecture() {
        let page = "| crates/http | a | b | - |\n| crates/log | a | b | server |\n\
                    | crates/other | a | b | - |\n";
        let files = [
            ("ARCHITECTURE.md", page),
            ("crates/http/Cargo.toml", ""),
            ("crates/log/Cargo.toml", ""),
            ("crates/push/Cargo.toml", ""),
        ];
        let expected = [
            "ARCHITECTURE.md: the table of crates lacks crates/push",
            "ARCHITECTURE.md:2: crates/log may depend on: http",
            "ARCHITECTURE.md:3: there is no crates/other",
        ];
        check_rule(check_architecture, &files, &expected);
    }

    #[test]
    fn allows_dependencies_on_known_crates_only() {
        for entry in &CRATES {
            for seen in entry.may_see {
                assert!(of_folder(seen.trim_end_matches('?')).is_some(), "{seen}");
            }
        }
    }

    #[test]
    fn finds_the_crate_of_a_path() {
        let found = of_path("crates/http/src/head.rs").map(|(entry, rest)| (entry.folder, rest));
        assert_eq!(found, Some(("http", "src/head.rs")));
        assert!(of_path("bench/src/main.rs").is_none());
    }
}
