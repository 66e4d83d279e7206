//! Rules for every text file: ASCII, working links, captions, no path or host of one machine.

use super::{Complaint, File, Tree, has_extension};

/// Texts of third parties.
const FOREIGN_TEXTS: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The documents with the map of the repository. Each has a caption for every crate.
const MAPS: [&str; 2] = ["README.md", "ARCHITECTURE.md"];

/// The example whose code the README shows.
const EXAMPLE: &str = "examples/board.rs";

/// Beginnings of paths that exist on one machine only. In pieces, or this file would break its own
/// rule.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Hosts that belong in the configuration of cargo and pip, never in the checkout.
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
            has_no_machine_paths(file, number + 1, line, complaints);
        }
        if has_extension(&file.path, "md") {
            links_resolve(file, tree, complaints);
        }
    }
    readme_matches_example(tree, complaints);
    parity_names_its_tests(tree, complaints);
    for map in MAPS {
        captions_every_crate(map, tree, complaints);
    }
}

fn is_ascii(file: &File, number: usize, line: &str, complaints: &mut Vec<Complaint>) {
    if let Some(char) = line.chars().find(|char| !char.is_ascii()) {
        file.complain(complaints, number, format!("{} is not ASCII", char.escape_unicode()));
    }
}

fn has_no_machine_paths(file: &File, number: usize, line: &str, complaints: &mut Vec<Complaint>) {
    for path in MACHINE_PATHS {
        // A longer path that contains the text (`docs/../home/`) is not a home folder.
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

fn links_resolve(file: &File, tree: &Tree, complaints: &mut Vec<Complaint>) {
    for (number, line) in file.text.lines().enumerate() {
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split([')', ' ', '#']).next().unwrap_or_default();
            let is_outside = target.contains("://") || target.starts_with("mailto:");
            if !is_outside && !target.is_empty() && !tree.holds(&resolve(&file.path, target)) {
                let what = format!("the link to {target} is broken");
                file.complain(complaints, number + 1, what);
            }
        }
    }
}

/// The code in the README is the code that the tests build, start and request.
fn readme_matches_example(tree: &Tree, complaints: &mut Vec<Complaint>) {
    let Some(readme) = tree.file("README.md") else { return };
    let Some((_, rest)) = readme.text.split_once("```rust\n") else { return };
    let page = rest.split("```").next().unwrap_or_default();
    if !tree.file(EXAMPLE).is_some_and(|example| example.text.contains(page)) {
        readme.complain(complaints, 0, format!("its page is not, word for word, in {EXAMPLE}"));
    }
}

/// Every feature marked "yes" in docs/parity.md names its evidence; a name in snake case is the
/// name of a test.
fn parity_names_its_tests(tree: &Tree, complaints: &mut Vec<Complaint>) {
    let Some(parity) = tree.file("docs/parity.md") else { return };
    for (number, line) in parity.text.lines().enumerate() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, feature, _, evidence, "yes", _] = cells[..] else { continue };
        if evidence.is_empty() {
            parity.complain(complaints, number + 1, format!("`{feature}` names no test"));
        }
        let tests = evidence.split('`').skip(1).step_by(2).filter(|name| {
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

/// The caption of a crate is the text after its path on the same line.
fn captions_every_crate(map: &str, tree: &Tree, complaints: &mut Vec<Complaint>) {
    let text = tree.file(map).map_or("", |file| &file.text);
    for file in &tree.files {
        let Some(folder) = file.path.strip_suffix("/Cargo.toml") else { continue };
        let Some(name) = folder.strip_prefix("crates/") else { continue };
        if !name.contains('/') && !text.lines().any(|line| is_caption(line, folder)) {
            let what = format!("{folder} has no caption");
            complaints.push(Complaint { path: map.to_owned(), line: 0, what });
        }
    }
}

fn is_caption(line: &str, folder: &str) -> bool {
    let Some((_, rest)) = line.split_once(folder) else { return false };
    let is_whole = !rest.starts_with(|char: char| char.is_alphanumeric() || char == '_');
    is_whole && rest.split_whitespace().filter(|word| word.len() > 1).count() >= 3
}

/// The target of a link as a path from the root of the checkout.
fn resolve(path: &str, target: &str) -> String {
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
    fn catches_a_character_outside_ascii() {
        check(super::check, &[("a.md", "b\nc \u{2014} d\n")], &["a.md:2: \\u{2014} is not ASCII"]);
        check(super::check, &[("LICENSE-MIT", "\u{a9}\n")], &[]);
    }

    #[test]
    fn catches_a_path_of_one_machine() {
        for path in MACHINE_PATHS {
            let expected = format!("a.sh:1: {path} is a path of one machine");
            check(super::check, &[("a.sh", &format!("cd {path}b\n"))], &[&expected]);
            check(super::check, &[("a.sh", &format!("cd frame{path}b\n"))], &[]);
        }
    }

    #[test]
    fn catches_the_host_of_a_registry() {
        for host in REGISTRY_HOSTS {
            let expected = format!("a.toml:1: {host} is the host of a registry");
            check(super::check, &[("a.toml", &format!("a = \"https://{host}/\"\n"))], &[&expected]);
        }
    }

    #[test]
    fn catches_a_broken_link() {
        let links = "[a](b.md#c) [d](../e/) [f](https://g.example/) [h](#i) [j](k.md)\n";
        let files = [("docs/a.md", links), ("docs/b.md", ""), ("e/l", "")];
        check(super::check, &files, &["docs/a.md:1: the link to k.md is broken"]);
    }

    #[test]
    fn catches_a_readme_that_differs_from_the_example() {
        let readme = ("README.md", "A page:\n\n```rust\nfn main() {}\n```\n");
        check(super::check, &[readme, (EXAMPLE, "//! A.\n\nfn main() {}\n")], &[]);
        let expected = ["README.md: its page is not, word for word, in examples/board.rs"];
        check(super::check, &[readme, (EXAMPLE, "//! A.\n\nfn main() { run() }\n")], &expected);
    }

    #[test]
    fn catches_a_feature_without_its_test() {
        let parity = "| a | 1 | | yes |\n| b | 1 | `c_d`, `e_f` | yes |\n| g | 1 | | not yet |\n";
        let files = [("docs/parity.md", parity), ("h.rs", "//! H.\nfn c_d() {}\n// fn e_f() {}\n")];
        let expected =
            ["docs/parity.md:1: `a` names no test", "docs/parity.md:2: there is no test `e_f`"];
        check(super::check, &files, &expected);
    }

    #[test]
    fn catches_a_crate_without_a_caption() {
        let map = ("README.md", "crates/html2  pages as values\ncrates/html  pages as values\n");
        let crates = [("crates/html/Cargo.toml", ""), ("crates/http/Cargo.toml", "")];
        let expected = [
            "README.md: crates/http has no caption",
            "ARCHITECTURE.md: crates/html has no caption",
            "ARCHITECTURE.md: crates/http has no caption",
        ];
        check(super::check, &[map, crates[0], crates[1]], &expected);
    }
}
