//! The origin of a point: program version, machine and time.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::machine::{self, Machine};
use crate::tools::output;

/// The sources of the build in a checkout: generated documents do not change the version.
const BUILT: [&str; 8] =
    ["--", ".cargo", "Cargo.toml", "Cargo.lock", "crates", "bench", "examples", ":(exclude)*.md"];
/// Digits of a commit name and of a digest of changes.
const DIGITS: usize = 12;

/// The measured version; it includes the visitors, which are built from the same tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    number: String,
    commit: Option<Commit>,
}

/// The state of a checkout.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Commit {
    /// The last commit that changed the sources of the build.
    name: String,
    /// A digest of uncommitted changes. For files that git does not track, it covers only their
    /// names.
    changes: Option<String>,
}

/// The version, machine, start and duration of the measurement of a point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Origin {
    pub(crate) version: Version,
    pub(crate) machine: Machine,
    /// In ISO 8601 format, UTC.
    pub(crate) began: String,
    /// In seconds, including the server's start and end.
    pub(crate) took: f64,
}

impl Version {
    /// The version of the sources now.
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
            None => out.write_str(" (no checkout)"),
        }
    }
}

impl Commit {
    /// `None` without a checkout, or without git.
    fn of(root: &Path) -> Option<Self> {
        let run = |words: &[&str]| {
            output(Command::new("git").current_dir(root).args(words).args(BUILT)).ok()
        };
        let abbreviated = format!("--abbrev={DIGITS}");
        let name = run(&["log", "-1", "--format=%h", &abbreviated])?.trim().to_owned();
        // A folder inside a foreign checkout has no commit.
        if name.is_empty() {
            return None;
        }
        let status = run(&["status", "--porcelain", "--untracked-files=all"])?;
        let changes = (!status.is_empty()).then(|| {
            let difference = run(&["diff", "--no-ext-diff", "HEAD"]).unwrap_or_default();
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

    /// `None` if the file does not contain it.
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

/// The origin that all points of a run share.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) version: Version,
    machine: Machine,
}

impl Place {
    pub(crate) fn of(root: &Path) -> Self {
        Self { version: Version::of(root), machine: Machine::this() }
    }

    /// Runs `action` and returns its result with its origin.
    pub(crate) fn measure<T>(&self, action: impl FnOnce() -> T) -> (T, Origin) {
        let began = machine::now();
        let start = std::time::Instant::now();
        let done = action();
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
pub(crate) mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A version with this commit and no changes.
    pub(crate) fn version(commit: &str) -> Version {
        let commit = Commit { name: commit.to_owned(), changes: None };
        Version { number: "0.1.0".to_owned(), commit: Some(commit) }
    }

    pub(crate) fn origin(commit: &str) -> Origin {
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
            for name in ["docs", "examples"] {
                fs::create_dir_all(folder.join(name)).unwrap();
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
    fn distinguishes_every_state_of_the_sources() {
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
            assert!(!versions[..place].contains(version), "{version} is repeated");
        }
    }

    /// The benchmark writes its figures into docs, and they are committed; the version must not
    /// change.
    #[test]
    fn ignores_documents_in_the_version() {
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
    fn uses_the_number_alone_without_a_checkout() {
        let checkout = Checkout::new("none");
        fs::remove_dir_all(checkout.0.join(".git")).unwrap();
        let number = env!("CARGO_PKG_VERSION");
        assert_eq!(checkout.version().to_string(), format!("{number} (no checkout)"));
    }

    #[test]
    fn round_trips_an_origin() {
        let mut origin = origin("a");
        assert_eq!(Origin::parse(&origin.value()), Some(origin.clone()));
        origin.version.commit = None;
        assert_eq!(Origin::parse(&origin.value()), Some(origin));
        assert_eq!(Origin::parse(&json!({ "version": "0.1.0" })), None);
    }
}
