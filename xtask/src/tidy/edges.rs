//! Rule: which package may depend on which, dev-dependencies and build-dependencies included.

use anyhow::{Context, Result, bail};

use super::Complaint;
use super::crates::{self, CRATES};
use super::json::Json;
use crate::{paths, process};

/// Folders with packages outside `crates/`. They may depend on every crate, and no crate may depend
/// on them.
const OUTSIDE: [&str; 3] = ["bench", "examples", "xtask"];

/// A package of the workspace.
pub(super) struct Package {
    name: String,
    /// Its folder, from the root of the checkout.
    folder: String,
    needs: Vec<Need>,
}

/// A dependency on a package of this checkout.
struct Need {
    /// The folder of the dependency, from the root of the checkout.
    folder: String,
    optional: bool,
}

/// Reads the packages of the workspace with `cargo metadata`.
pub(super) fn packages() -> Result<Vec<Package>> {
    let mut command = process::cargo();
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = command.current_dir(paths::root()).output().context("cannot start cargo")?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{stderr}\nfailed; to repeat: {}", process::command_line(&command));
    }
    let metadata = Json::read(&String::from_utf8(output.stdout)?)?;
    let root = metadata.member("workspace_root").text().context("cargo names no root")?;
    metadata.member("packages").elements().iter().map(|json| Package::read(json, root)).collect()
}

/// Reports every dependency that the table of crates does not allow.
pub(super) fn check(packages: &[Package]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for package in packages {
        let mut complain = |what: String| {
            let path = format!("{}/Cargo.toml", package.folder);
            complaints.push(Complaint { path, line: 0, what });
        };
        if OUTSIDE.contains(&package.folder.as_str()) {
            continue;
        }
        let Some(entry) = package.folder.strip_prefix("crates/").and_then(crates::of_folder) else {
            complain("unknown crate; the list is in xtask/src/tidy/crates.rs".to_owned());
            continue;
        };
        if package.name != entry.package() {
            complain(format!("the package must be named {}", entry.package()));
        }
        for need in &package.needs {
            let seen = need.folder.strip_prefix("crates/").unwrap_or(&need.folder);
            if seen == entry.folder {
                // A package may depend on itself: its tests then enable a feature that users
                // choose.
                continue;
            }
            let optional = format!("{seen}?");
            if entry.may_see.contains(&optional.as_str()) {
                if !need.optional {
                    complain(format!("{} may see {seen} only as an option", entry.folder));
                }
            } else if !entry.may_see.contains(&seen) {
                complain(format!("{} must not see {seen}", entry.folder));
            }
        }
    }
    complaints.extend(cycles());
    complaints
}

/// The table must have no cycle.
fn cycles() -> Option<Complaint> {
    let mut left: Vec<_> = CRATES.iter().collect();
    loop {
        let before = left.len();
        let names: Vec<_> = left.iter().map(|entry| entry.folder).collect();
        left.retain(|entry| {
            entry.may_see.iter().any(|seen| names.contains(&seen.trim_end_matches('?')))
        });
        if left.is_empty() {
            return None;
        }
        if left.len() == before {
            let what = format!("the crates depend on each other in a cycle: {}", names.join(", "));
            let path = "xtask/src/tidy/crates.rs".to_owned();
            return Some(Complaint { path, line: 0, what });
        }
    }
}

impl Package {
    fn read(json: &Json, root: &str) -> Result<Self> {
        let name = json.member("name").text().context("a package has no name")?;
        let manifest = json.member("manifest_path").text().context("a package has no manifest")?;
        let folder = manifest.trim_end_matches("Cargo.toml");
        let needs = json.member("dependencies").elements().iter().filter_map(|need| {
            // Only a package in a folder has a path; the rest have a registry.
            let path = need.member("path").text()?;
            let optional = need.member("optional") == &Json::Bool(true);
            Some(Need { folder: beneath(root, path), optional })
        });
        Ok(Self { name: name.to_owned(), folder: beneath(root, folder), needs: needs.collect() })
    }
}

fn beneath(root: &str, path: &str) -> String {
    path.strip_prefix(root).unwrap_or(path).trim_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_a_dependency_of_the_table() {
        check("crates/files", "bine-files", &[("crates/server", false)], &[]);
    }

    #[test]
    fn rejects_a_dependency_outside_the_table() {
        let expected = ["crates/server/Cargo.toml: server must not see html"];
        check("crates/server", "bine-server", &[("crates/html", false)], &expected);
    }

    #[test]
    fn rejects_a_dependency_on_bench() {
        let expected = ["crates/http/Cargo.toml: http must not see bench"];
        check("crates/http", "bine-http", &[("bench", false)], &expected);
    }

    #[test]
    fn keeps_heavy_dependencies_of_the_program_optional() {
        let expected = ["crates/bine/Cargo.toml: bine may see script only as an option"];
        check("crates/bine", "bine", &[("crates/script", false)], &expected);
        check("crates/bine", "bine", &[("crates/script", true)], &[]);
    }

    #[test]
    fn rejects_an_unknown_crate() {
        let expected = "unknown crate; the list is in xtask/src/tidy/crates.rs";
        check(
            "crates/common",
            "bine-common",
            &[],
            &[&format!("crates/common/Cargo.toml: {expected}")],
        );
        check("helpers", "helpers", &[], &[&format!("helpers/Cargo.toml: {expected}")]);
    }

    #[test]
    fn requires_the_name_of_the_folder_for_a_package() {
        let expected = ["crates/http/Cargo.toml: the package must be named bine-http"];
        check("crates/http", "http", &[], &expected);
    }

    #[test]
    fn lets_bench_depend_on_every_crate() {
        check("bench", "bine-bench", &[("crates/http", false), ("crates/cli", false)], &[]);
    }

    #[test]
    fn rejects_a_renamed_dev_dependency() {
        let json = r#"{"name": "bine-http", "manifest_path": "/c/crates/http/Cargo.toml",
            "dependencies": [{"name": "bine-html", "rename": "markup", "kind": "dev",
            "optional": false, "path": "/c/crates/html"}, {"name": "httparse"}]}"#;
        let package = Package::read(&Json::read(json).expect("it is JSON"), "/c");
        let complaints = super::check(&[package.expect("it is a package")]);
        let messages: Vec<_> = complaints.iter().map(ToString::to_string).collect();
        assert_eq!(messages, ["crates/http/Cargo.toml: http must not see html"]);
    }

    fn check(folder: &str, name: &str, needs: &[(&str, bool)], expected: &[&str]) {
        let need = |(folder, optional): &(&str, bool)| Need {
            folder: (*folder).to_owned(),
            optional: *optional,
        };
        let needs = needs.iter().map(need).collect();
        let package = Package { name: name.to_owned(), folder: folder.to_owned(), needs };
        let messages: Vec<_> = super::check(&[package]).iter().map(ToString::to_string).collect();
        assert_eq!(messages, expected);
    }
}
