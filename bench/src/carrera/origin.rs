//! Decides how a point says which program was measured, where, and when.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::machine::{self, Machine};
use crate::tools::output;

/// Of a checkout, what is built: what the bench writes into docs, or beside them, makes no other version.
const BUILT: [&str; 8] =
    ["--", ".cargo", "Cargo.toml", "Cargo.lock", "crates", "bench", "examples", ":(exclude)*.md"];
/// Digits of a commit, and of what tells changed trees apart.
const DIGITS: usize = 12;

/// Which program was measured; visitors belong to it, for they are built from the same tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    number: String,
    commit: Option<Commit>,
}

/// Where a checkout stood.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Commit {
    /// The last that changed what is built.
    name: String,
    /// Where what is built was changed since: a digest of how. Of files that git does not know it has the names alone.
    changes: Option<String>,
}

/// What was measured of a point, where, from when on, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Origin {
    pub(crate) version: Version,
    pub(crate) machine: Machine,
    /// As ISO 8601 has it, in UTC.
    pub(crate) began: String,
    /// Seconds, with the server's start and end.
    pub(crate) took: f64,
}

impl Version {
    /// What is built from the repository now.
    pub(crate) fn of(root: &Path) -> Self {
        Self { number: env!("CARGO_PKG_VERSION").to_owned(), commit: Commit::of(root) }
    }

    fn parse(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        let commit = text("commit").map(|name| Commit { name, changes: text("changes") });
        Some(Self { number: text("version")?, commit })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.number)?;
        match &self.commit {
            Some(Commit { name, changes: None }) => write!(out, " ({name})"),
            Some(Commit { name, changes: Some(changes) }) => {
                write!(out, " ({name}, changed: {changes})")
            }
            None => out.write_str(" (of no checkout)"),
        }
    }
}

impl Commit {
    /// `None` where there is no checkout, or no git that reads it.
    fn of(root: &Path) -> Option<Self> {
        let said = |words: &[&str]| {
            output(Command::new("git").current_dir(root).args(words).args(BUILT)).ok()
        };
        let abbreviated = format!("--abbrev={DIGITS}");
        let name = said(&["log", "-1", "--format=%h", &abbreviated])?.trim().to_owned();
        // Of a folder within somebody else's checkout there is no commit.
        if name.is_empty() {
            return None;
        }
        let status = said(&["status", "--porcelain", "--untracked-files=all"])?;
        let changes = (!status.is_empty()).then(|| {
            let difference = said(&["diff", "--no-ext-diff", "HEAD"]).unwrap_or_default();
            digest(&(status + &difference))
        });
        Some(Self { name, changes })
    }
}

impl Origin {
    pub(crate) fn value(&self) -> Value {
        let commit = self.version.commit.as_ref();
        json!({
            "version": self.version.number,
            "commit": commit.map(|commit| &commit.name),
            "changes": commit.and_then(|commit| commit.changes.as_ref()),
            "kernel": self.machine.kernel,
            "processor": self.machine.processor,
            "cores": self.machine.cores,
            "began": self.began,
            "took, s": self.took,
        })
    }

    /// `None` of a file that does not say it.
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        Some(Self {
            version: Version::parse(value)?,
            machine: Machine {
                kernel: text("kernel")?,
                processor: text("processor")?,
                cores: value.get("cores")?.as_u64()?,
            },
            began: text("began")?,
            took: value.get("took, s")?.as_f64()?,
        })
    }
}

/// A run that measures: what its points have in common.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) version: Version,
    machine: Machine,
}

impl Place {
    pub(crate) fn of(root: &Path) -> Self {
        Self { version: Version::of(root), machine: Machine::this() }
    }

    /// Does something, and tells of it where it comes from.
    pub(crate) fn tell<T>(&self, what: impl FnOnce() -> T) -> (T, Origin) {
        let began = machine::now();
        let start = std::time::Instant::now();
        let done = what();
        let took = start.elapsed().as_secs_f64();
        let origin =
            Origin { version: self.version.clone(), machine: self.machine.clone(), began, took };
        (done, origin)
    }
}

/// FNV-1a.
fn digest(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")[..DIGITS].to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A version of this commit, of an unchanged tree.
    pub(in crate::carrera) fn version(commit: &str) -> Version {
        let commit = Commit { name: commit.to_owned(), changes: None };
        Version { number: "0.1.0".to_owned(), commit: Some(commit) }
    }

    pub(in crate::carrera) fn origin(commit: &str) -> Origin {
        let machine =
            Machine { kernel: "6.18.0".to_owned(), processor: "A processor".to_owned(), cores: 2 };
        let began = "2026-11-22T04:00:00Z".to_owned();
        Origin { version: version(commit), machine, began, took: 122.5 }
    }

    /// A checkout with a program and a document.
    struct Checkout(PathBuf);

    impl Checkout {
        fn new(name: &str) -> Self {
            let folder =
                std::env::temp_dir().join(format!("bine-origin-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            for room in ["docs", "examples"] {
                fs::create_dir_all(folder.join(room)).unwrap();
            }
            let checkout = Self(folder);
            checkout.git(&["init", "--quiet"]);
            checkout.write("examples/hello.rs", "fn main() {}");
            checkout.write("docs/guide.md", "A guide.");
            checkout.commit("begin");
            checkout
        }

        fn git(&self, words: &[&str]) {
            let own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
            output(Command::new("git").current_dir(&self.0).args(own).args(words)).unwrap();
        }

        fn commit(&self, message: &str) {
            self.git(&["add", "--all"]);
            self.git(&["commit", "--quiet", "--no-verify", "--message", message]);
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.0.join(path), text).unwrap();
        }

        fn version(&self) -> Version {
            Version::of(&self.0)
        }
    }

    impl Drop for Checkout {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn each_state_of_what_is_built_is_a_version_of_its_own() {
        let checkout = Checkout::new("states");
        let first = checkout.version();
        assert!(!first.to_string().contains("changed"), "{first}");
        checkout.write("examples/hello.rs", "fn main() { println!() }");
        let changed = checkout.version();
        assert!(changed.to_string().contains(", changed: "), "{changed}");
        checkout.write("examples/hello.rs", "fn main() { print!() }");
        let otherwise = checkout.version();
        checkout.commit("change");
        let second = checkout.version();
        checkout.write("examples/new.rs", "");
        let versions = [&first, &changed, &otherwise, &second, &checkout.version()];
        for (place, version) in versions.iter().enumerate() {
            assert!(!versions[..place].contains(version), "{version} twice");
        }
    }

    /// The bench writes its figures into docs, and they are committed: what is measured then is what it was.
    #[test]
    fn what_is_written_beside_what_is_built_makes_no_other_version() {
        let checkout = Checkout::new("docs");
        let first = checkout.version();
        checkout.write("docs/points.tsv", "a\tb\n");
        checkout.write("examples/README.md", "Bine.");
        checkout.write("quick.json", "{}");
        assert_eq!(checkout.version(), first);
        checkout.commit("docs");
        assert_eq!(checkout.version(), first);
    }

    #[test]
    fn without_a_checkout_there_is_the_number_alone() {
        let checkout = Checkout::new("none");
        fs::remove_dir_all(checkout.0.join(".git")).unwrap();
        let number = env!("CARGO_PKG_VERSION");
        assert_eq!(checkout.version().to_string(), format!("{number} (of no checkout)"));
    }

    #[test]
    fn an_origin_comes_back_as_it_was_kept() {
        let mut origin = origin("a");
        assert_eq!(Origin::parse(&origin.value()), Some(origin.clone()));
        origin.version.commit = None;
        assert_eq!(Origin::parse(&origin.value()), Some(origin));
        assert_eq!(Origin::parse(&json!({ "version": "0.1.0" })), None);
    }
}
