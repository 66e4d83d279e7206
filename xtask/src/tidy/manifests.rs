//! Rules for manifests: shared lints, reasons for lint exceptions and for dependencies.

use super::{Complaint, File, Tree};

/// The document with the reason for each dependency.
const DEPENDENCIES: &str = "docs/decisions/0006-dependencies.md";

/// The only registry that a lock file may name.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Runs every rule about manifests and lock files.
pub(super) fn check(tree: &Tree, complaints: &mut Vec<Complaint>) {
    for file in &tree.files {
        match file.path.as_str() {
            "Cargo.toml" => {
                exceptions_have_reasons(file, complaints);
                dependencies_have_reasons(file, tree, complaints);
            }
            path if path.ends_with("Cargo.lock") => uses_one_registry(file, complaints),
            path if is_member(path) => shares_the_lints(file, complaints),
            _ => {}
        }
    }
}

/// The reason is a comment on the line of the exception or the line above it.
fn exceptions_have_reasons(file: &File, complaints: &mut Vec<Complaint>) {
    let mut above = "";
    for (number, section, line) in lines(file) {
        let is_exception = section.starts_with("workspace.lints") && line.contains("\"allow\"");
        if is_exception && !line.contains('#') && !above.starts_with('#') {
            let name = line.split('=').next().unwrap_or(line).trim();
            file.complain(complaints, number, format!("`{name}` is allowed without a reason"));
        }
        above = line;
    }
}

fn dependencies_have_reasons(file: &File, tree: &Tree, complaints: &mut Vec<Complaint>) {
    let reasons = tree.file(DEPENDENCIES).map_or("", |file| &file.text);
    for (number, section, line) in lines(file) {
        let Some((name, rest)) = line.split_once('=') else { continue };
        if section != "workspace.dependencies" || line.starts_with('#') || rest.contains("path =") {
            continue;
        }
        let name = name.trim();
        if !reasons.contains(&format!("`{name}`")) {
            let what = format!("`{name}` has no line in {DEPENDENCIES}");
            file.complain(complaints, number, what);
        }
    }
}

fn uses_one_registry(file: &File, complaints: &mut Vec<Complaint>) {
    for (number, _, line) in lines(file) {
        let Some(source) = line.strip_prefix("source = ") else { continue };
        if source.trim_matches('"') != REGISTRY {
            file.complain(complaints, number, format!("{source} is not the public registry"));
        }
    }
}

fn shares_the_lints(file: &File, complaints: &mut Vec<Complaint>) {
    let shared =
        lines(file).any(|(_, section, line)| section == "lints" && line == "workspace = true");
    if !shared {
        file.complain(complaints, 0, "does not share the lints: [lints] workspace = true");
    }
}

fn is_member(path: &str) -> bool {
    let folder = path.strip_suffix("/Cargo.toml").unwrap_or_default();
    let name = folder.strip_prefix("crates/").unwrap_or_default();
    matches!(folder, "bench" | "examples" | "xtask") || (!name.is_empty() && !name.contains('/'))
}

/// The lines of a manifest, each with its number and its table.
fn lines(file: &File) -> impl Iterator<Item = (usize, &str, &str)> {
    let mut section = "";
    file.text.lines().enumerate().map(move |(number, line)| {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_start_matches('[').split(']').next().unwrap_or_default();
        }
        (number + 1, section, line.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::super::check;

    #[test]
    fn catches_a_lint_exception_without_a_reason() {
        let text =
            "[workspace.lints.clippy]\na = \"allow\" # b\n# c\nd = \"allow\"\ne = \"allow\"\n";
        let expected = ["Cargo.toml:5: `e` is allowed without a reason"];
        check(super::check, &[("Cargo.toml", text)], &expected);
    }

    #[test]
    fn catches_a_dependency_without_a_reason() {
        let text =
            "[workspace.dependencies]\n# Ours.\na = { path = \"a\" }\nb = \"1\"\nc = \"2\"\n";
        let reasons = ("docs/decisions/0006-dependencies.md", "| `b` | speed |\n");
        let expected = ["Cargo.toml:5: `c` has no line in docs/decisions/0006-dependencies.md"];
        check(super::check, &[("Cargo.toml", text), reasons], &expected);
    }

    #[test]
    fn catches_a_second_registry() {
        let good =
            "[[package]]\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
        check(super::check, &[("Cargo.lock", good)], &[]);
        let expected = ["Cargo.lock:1: \"git+https://example.org/a\" is not the public registry"];
        check(
            super::check,
            &[("Cargo.lock", "source = \"git+https://example.org/a\"\n")],
            &expected,
        );
    }

    #[test]
    fn catches_a_member_without_the_shared_lints() {
        let expected =
            ["crates/http/Cargo.toml: does not share the lints: [lints] workspace = true"];
        check(super::check, &[("crates/http/Cargo.toml", "[package]\nname = \"a\"\n")], &expected);
        check(super::check, &[("xtask/Cargo.toml", "[lints]\nworkspace = true\n")], &[]);
        check(super::check, &[("bench/peers/hyper/Cargo.toml", "[package]\n")], &[]);
    }
}
