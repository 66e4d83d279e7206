//! Decides what every text must keep to: ASCII, links that lead somewhere, captions, nothing of one machine.

use super::{Complaint, File, Tree, has_extension};

/// Texts whose wording is not ours.
const FOREIGN_TEXTS: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The documents that draw the map; each names every room with a caption.
const MAPS: [&str; 2] = ["README.md", "ARCHITECTURE.md"];

/// Where the README's page lives.
const EXAMPLE: &str = "examples/board.rs";

/// Beginnings of paths that mean something on one machine only. In pieces, or this file would break its rule.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Hosts that belong into the configuration of cargo and pip, never into the checkout.
const REGISTRY_HOSTS: [&str; 4] = [
    concat!("index.cra", "tes.io"),
    concat!("static.cra", "tes.io"),
    concat!("pypi", ".org"),
    concat!("files.python", "hosted.org"),
];

/// Runs every rule about text.
pub(super) fn check(tree: &Tree, complaints: &mut Vec<Complaint>) {
    for file in &tree.files {
        if FOREIGN_TEXTS.contains(&file.path.as_str()) {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            is_ascii(file, number + 1, line, complaints);
            names_no_machine(file, number + 1, line, complaints);
        }
        if has_extension(&file.path, "md") {
            links_lead_somewhere(file, tree, complaints);
        }
    }
    shows_code_that_runs(tree, complaints);
    keeps_its_promises(tree, complaints);
    for map in MAPS {
        captions_every_room(map, tree, complaints);
    }
}

fn is_ascii(file: &File, number: usize, line: &str, complaints: &mut Vec<Complaint>) {
    if let Some(char) = line.chars().find(|char| !char.is_ascii()) {
        file.complain(complaints, number, format!("{} is not ASCII", char.escape_unicode()));
    }
}

fn names_no_machine(file: &File, number: usize, line: &str, complaints: &mut Vec<Complaint>) {
    for path in MACHINE_PATHS {
        // A longer path that merely contains the words (`docs/../home/`) is nobody's home.
        let begins = |at: usize| {
            !line[..at]
                .ends_with(|char: char| char.is_ascii_alphanumeric() || ".-_~".contains(char))
        };
        if line.match_indices(path).any(|(at, _)| begins(at)) {
            file.complain(complaints, number, format!("{path} is a path of one machine"));
        }
    }
    for host in REGISTRY_HOSTS {
        if line.contains(host) {
            file.complain(complaints, number, format!("{host} is the host of a registry"));
        }
    }
}

fn links_lead_somewhere(file: &File, tree: &Tree, complaints: &mut Vec<Complaint>) {
    for (number, line) in file.text.lines().enumerate() {
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split([')', ' ', '#']).next().unwrap_or_default();
            let is_outside = target.contains("://") || target.starts_with("mailto:");
            if !is_outside && !target.is_empty() && !tree.holds(&beside(&file.path, target)) {
                let what = format!("the link to {target} leads nowhere");
                file.complain(complaints, number + 1, what);
            }
        }
    }
}

/// The page in the README is the one that is built, started and asked by the tests.
fn shows_code_that_runs(tree: &Tree, complaints: &mut Vec<Complaint>) {
    let Some(readme) = tree.file("README.md") else { return };
    let Some((_, behind)) = readme.text.split_once("```rust\n") else { return };
    let page = behind.split("```").next().unwrap_or_default();
    if !tree.file(EXAMPLE).is_some_and(|example| example.text.contains(page)) {
        readme.complain(complaints, 0, format!("its page is not, word for word, in {EXAMPLE}"));
    }
}

/// A promise that counts as kept names what shows it; what looks like a test's name is one.
fn keeps_its_promises(tree: &Tree, complaints: &mut Vec<Complaint>) {
    let Some(parity) = tree.file("docs/parity.md") else { return };
    for (number, line) in parity.text.lines().enumerate() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, promise, _, shown_by, "yes", _] = cells[..] else { continue };
        if shown_by.is_empty() {
            parity.complain(complaints, number + 1, format!("nothing shows `{promise}`"));
        }
        let tests = shown_by.split('`').skip(1).step_by(2).filter(|name| {
            name.contains('_') && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        });
        for test in tests {
            let declaration = format!("fn {test}(");
            let mut rust = tree.files.iter().filter_map(|file| file.rust.as_ref());
            if !rust.any(|rust| rust.code.contains(&declaration)) {
                parity.complain(complaints, number + 1, format!("there is no test `{test}`"));
            }
        }
    }
}

/// A room's caption is the words behind its path on the same line.
fn captions_every_room(map: &str, tree: &Tree, complaints: &mut Vec<Complaint>) {
    let text = tree.file(map).map_or("", |file| &file.text);
    for file in &tree.files {
        let Some(folder) = file.path.strip_suffix("/Cargo.toml") else { continue };
        let Some(room) = folder.strip_prefix("crates/") else { continue };
        if !room.contains('/') && !text.lines().any(|line| is_caption(line, folder)) {
            let what = format!("{folder} has no caption");
            complaints.push(Complaint { path: map.to_owned(), line: 0, what });
        }
    }
}

fn is_caption(line: &str, folder: &str) -> bool {
    let Some((_, behind)) = line.split_once(folder) else { return false };
    let is_whole = !behind.starts_with(|char: char| char.is_alphanumeric() || char == '_');
    is_whole && behind.split_whitespace().filter(|word| word.len() > 1).count() >= 3
}

/// A link's target as a path from the top of the checkout.
fn beside(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn a_letter_beyond_ascii_is_caught() {
        check(super::check, &[("a.md", "b\nc \u{2014} d\n")], &["a.md:2: \\u{2014} is not ASCII"]);
        check(super::check, &[("LICENSE-MIT", "\u{a9}\n")], &[]);
    }

    #[test]
    fn a_path_of_one_machine_is_caught() {
        for path in MACHINE_PATHS {
            let told = format!("a.sh:1: {path} is a path of one machine");
            check(super::check, &[("a.sh", &format!("cd {path}b\n"))], &[&told]);
            check(super::check, &[("a.sh", &format!("cd frame{path}b\n"))], &[]);
        }
    }

    #[test]
    fn the_host_of_a_registry_is_caught() {
        for host in REGISTRY_HOSTS {
            let told = format!("a.toml:1: {host} is the host of a registry");
            check(super::check, &[("a.toml", &format!("a = \"https://{host}/\"\n"))], &[&told]);
        }
    }

    #[test]
    fn a_link_that_leads_nowhere_is_caught() {
        let links = "[a](b.md#c) [d](../e/) [f](https://g.example/) [h](#i) [j](k.md)\n";
        let files = [("docs/a.md", links), ("docs/b.md", ""), ("e/l", "")];
        check(super::check, &files, &["docs/a.md:1: the link to k.md leads nowhere"]);
    }

    #[test]
    fn a_page_shown_but_not_run_is_caught() {
        let readme = ("README.md", "A page:\n\n```rust\nfn main() {}\n```\n");
        check(super::check, &[readme, (EXAMPLE, "//! A.\n\nfn main() {}\n")], &[]);
        let told = ["README.md: its page is not, word for word, in examples/board.rs"];
        check(super::check, &[readme, (EXAMPLE, "//! A.\n\nfn main() { run() }\n")], &told);
    }

    #[test]
    fn a_promise_without_its_test_is_caught() {
        let parity = "| a | 1 | | yes |\n| b | 1 | `c_d`, `e_f` | yes |\n| g | 1 | | not yet |\n";
        let files = [("docs/parity.md", parity), ("h.rs", "//! H.\nfn c_d() {}\n// fn e_f() {}\n")];
        let told =
            ["docs/parity.md:1: nothing shows `a`", "docs/parity.md:2: there is no test `e_f`"];
        check(super::check, &files, &told);
    }

    #[test]
    fn a_room_without_a_caption_is_caught() {
        let map = ("README.md", "crates/html2  pages as values\ncrates/html  pages as values\n");
        let rooms = [("crates/html/Cargo.toml", ""), ("crates/http/Cargo.toml", "")];
        let told = [
            "README.md: crates/http has no caption",
            "ARCHITECTURE.md: crates/html has no caption",
            "ARCHITECTURE.md: crates/http has no caption",
        ];
        check(super::check, &[map, rooms[0], rooms[1]], &told);
    }
}
