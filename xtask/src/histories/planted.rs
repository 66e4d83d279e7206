//! Bugs that the checker must find: small changes of the source of Bine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{paths, process};

/// A change of the source that breaks a promise.
pub(super) struct Bug {
    pub(super) name: &'static str,
    changes: &'static [Change],
}

/// A text of a file that occurs once, and its replacement.
struct Change {
    file: &'static str,
    before: &'static str,
    after: &'static str,
}

pub(super) const BUGS: [Bug; 3] = [
    Bug {
        name: "reads are not validated",
        changes: &[Change {
            file: "crates/store/src/commit/shared.rs",
            before: "if self.history.conflicts(base, &accesses, written(), tables) {",
            after: "if false && self.history.conflicts(base, &accesses, written(), tables) {",
        }],
    },
    Bug {
        name: "a commit is acknowledged when it is sent",
        changes: &[Change {
            file: "crates/store/src/commit/shared.rs",
            before: "shared.push(entry, Waiting::Rows { completion, after_commit })?;",
            after: "shared.push(entry, Waiting::Rows { completion: Arc::default(), after_commit })?;\n        completion.settle(Ok(base.sequence));",
        }],
    },
    Bug {
        name: "messages that a node has missed while it was cut off are not delivered",
        changes: &[
            Change {
                file: "crates/cluster/src/follower.rs",
                before: "let target = info.state.last_sequence;",
                after: "let target = info.state.last_sequence;\n        if self.stored_at.take().is_some() {\n            self.position = target;\n        }",
            },
            Change {
                file: "crates/store/src/commit/shared.rs",
                before: "if position.checked_sub(1) != Some(state.position) {",
                after: "if position <= state.position {",
            },
        ],
    },
];

/// A copy of the sources, with a target folder that all bugs share.
pub(super) struct SourceCopy {
    folder: PathBuf,
    target: PathBuf,
}

impl SourceCopy {
    /// Copies all files of the checkout.
    pub(super) fn create() -> Result<Self> {
        let own = paths::target().join("histories/planted");
        let (folder, target) = (own.join("source"), own.join("target"));
        let mut list = Command::new("git");
        list.args(["ls-files", "-z"]).current_dir(paths::root());
        let output = list.output().context("cannot start git")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for name in String::from_utf8(output.stdout)?.split_terminator('\0') {
            copy(&paths::root().join(name), &folder.join(name))?;
        }
        Ok(Self { folder, target })
    }

    /// Builds the program with a bug, and takes the bug out of the copy again. Returns the program.
    pub(super) fn build(&self, bug: &Bug) -> Result<PathBuf> {
        for Change { file, before, after } in bug.changes {
            let text = fs::read_to_string(self.folder.join(file))?;
            fs::write(self.folder.join(file), replaced(&text, before, after)?)?;
        }
        let mut cargo = super::cargo_build(&self.folder);
        let built = process::run(cargo.env("CARGO_TARGET_DIR", &self.target));
        for Change { file, .. } in bug.changes {
            copy(&paths::root().join(file), &self.folder.join(file))?;
        }
        built?;
        Ok(self.target.join(super::PROGRAM))
    }
}

/// Copies a file unless the copy has the same content, so that cargo builds changed files only.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let Ok(content) = fs::read(from) else { return Ok(()) };
    if fs::read(to).is_ok_and(|known| known == content) {
        return Ok(());
    }
    fs::create_dir_all(to.parent().context("a file without a folder")?)?;
    Ok(fs::write(to, content)?)
}

fn replaced(text: &str, before: &str, after: &str) -> Result<String> {
    match text.matches(before).count() {
        1 => Ok(text.replacen(before, after, 1)),
        count => bail!("a planted bug replaces a text that occurs {count} times: `{before}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_bugs_fit_the_source() {
        for Bug { name, changes } in BUGS {
            assert!(!changes.is_empty(), "{name} has no change");
            for Change { file, before, after } in changes {
                let text = fs::read_to_string(paths::root().join(file)).expect("the file exists");
                let outcome = replaced(&text, before, after);
                assert!(outcome.is_ok_and(|new| new != text), "{name}: {file} has changed");
            }
        }
    }
}
