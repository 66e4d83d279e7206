//! Runs the rules of the repository over every file of the checkout.
//!
//! A rule is a function from a [`Tree`] to complaints. Each rule has a test with a bad sample.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use self::rust::Rust;
use crate::paths;

mod attributes;
mod crates;
mod documents;
mod edges;
mod functions;
mod json;
mod manifests;
mod modules;
mod prose;
mod rust;
mod source;
mod subsystems;
mod types;
mod unsafety;

/// Folders of git, cargo and the fuzzer.
const FOREIGN_FOLDERS: [&str; 5] = [".git", "target", "artifacts", "coverage", "corpus"];

/// Every file of the checkout.
struct Tree {
    files: Vec<File>,
    /// The paths of files that are not UTF-8, such as pictures. They have no rules.
    binary: Vec<String>,
}

/// One text file.
struct File {
    /// The path from the root of the checkout, with slashes.
    path: String,
    text: String,
    /// The text with code and comments separated; only for Rust.
    rust: Option<Rust>,
}

/// A broken rule at a place.
struct Complaint {
    path: String,
    /// Counted from one; zero means the whole file.
    line: usize,
    what: String,
}

/// Prints every broken rule, and fails if there is one.
pub(crate) fn run() -> Result<()> {
    let complaints = complaints()?;
    for complaint in &complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        1 => bail!("one rule is broken; see CONTRIBUTING.md"),
        count => bail!("{count} rules are broken; see CONTRIBUTING.md"),
    }
}

fn complaints() -> Result<Vec<Complaint>> {
    let tree = Tree::read(paths::root())?;
    let packages = edges::packages()?;
    let mut complaints = edges::check(&packages);
    let rules = [
        source::check,
        manifests::check,
        crates::check_architecture,
        modules::check,
        subsystems::check,
        types::check,
        prose::check,
        documents::check,
    ];
    for rule in rules {
        rule(&tree, &mut complaints);
    }
    complaints.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    Ok(complaints)
}

impl Tree {
    fn read(root: &Path) -> Result<Self> {
        let mut tree = Self { files: Vec::new(), binary: Vec::new() };
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
                let entry = entry?;
                let kind = entry.file_type()?;
                let name = entry.file_name();
                if kind.is_dir() && !FOREIGN_FOLDERS.iter().any(|foreign| name == *foreign) {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    let path = entry.path();
                    let name = path.strip_prefix(root).expect("found beneath the root");
                    let name = name.to_string_lossy().into_owned();
                    match String::from_utf8(fs::read(&path)?) {
                        Ok(text) => tree.files.push(File::new(&name, text)),
                        Err(_) => tree.binary.push(name),
                    }
                }
            }
        }
        Ok(tree)
    }

    fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether a file, or a folder with files in it, exists at this path.
    fn holds(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let mut paths = self.files.iter().map(|file| &file.path).chain(&self.binary);
        paths.any(|found| {
            found.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

impl File {
    fn new(path: &str, text: String) -> Self {
        let rust = has_extension(path, "rs").then(|| Rust::read(&text));
        Self { path: path.to_owned(), text, rust }
    }

    fn complain(&self, complaints: &mut Vec<Complaint>, line: usize, what: impl Into<String>) {
        complaints.push(Complaint { path: self.path.clone(), line, what: what.into() });
    }
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

impl Display for Complaint {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(formatter, "{}: {}", self.path, self.what),
            line => write!(formatter, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// Checks a rule over a tree of (path, text), and compares its complaints line by line.
#[cfg(test)]
fn check(rule: fn(&Tree, &mut Vec<Complaint>), files: &[(&str, &str)], expected: &[&str]) {
    let files = files.iter().map(|(path, text)| File::new(path, (*text).to_owned())).collect();
    let mut complaints = Vec::new();
    rule(&Tree { files, binary: Vec::new() }, &mut complaints);
    let messages: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    assert_eq!(messages, expected);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_passes_its_own_rules() {
        let messages: Vec<String> = complaints()
            .expect("the checkout can be read")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(messages.is_empty(), "\n{}", messages.join("\n"));
    }

    #[test]
    fn finds_a_folder_by_a_file_inside_it() {
        let files = vec![File::new("docs/guide/first.md", String::new())];
        let tree = Tree { files, binary: vec!["docs/picture.png".to_owned()] };
        assert!(tree.holds("docs/picture.png"));
        assert!(tree.holds("docs/guide") && tree.holds("docs/") && !tree.holds("docs/gui"));
    }
}
