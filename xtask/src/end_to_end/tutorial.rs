//! Runs every step of the tutorial, from `cargo new` to the copy of a board that a server runs.
//!
//! A block of `rust` has items of `src/main.rs`; each replaces the item of the same name. A block
//! of `sh tutorial` must succeed. A block of `sh tutorial server` runs until the next one, or until
//! a block of `sh tutorial stop`. Each step builds, starts and queries the program with the files
//! that the earlier steps wrote.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, os::unix};

use anyhow::{Context, Result, ensure};

use super::program::Program;
use crate::report::Tally;
use crate::{paths, process, profile};

/// The address in the guide; the tests replace it by a free port.
const PORT: &str = "127.0.0.1:8080";

/// Builds `bine` and runs the tutorial.
pub(crate) fn run() -> Result<()> {
    let mut cargo = process::cargo();
    cargo.args(["build", "--release", "--config"]).arg(profile::file()?);
    process::run(cargo.current_dir(paths::root()))?;
    let mut tally = Tally::default();
    follow(&mut tally)?;
    ensure!(tally.failed == 0, "the tutorial does not work");
    Ok(())
}

/// Runs the tutorial. A failure ends it, because each step needs the ones before.
pub(crate) fn follow(tally: &mut Tally) -> Result<()> {
    let chapter = fs::read_to_string(paths::root().join("docs/guide/tutorial.md"))?;
    let mut reader = Reader::new()?;
    for step in chapter.split("\n## ").skip(1) {
        let title = step.lines().next().unwrap_or_default();
        let done = blocks(step).try_for_each(|(kind, text)| reader.read(kind, text));
        let is_done = done.is_ok();
        tally.check(&format!("the tutorial's step {title}"), done);
        if !is_done {
            break;
        }
    }
    Ok(())
}

/// A user of the tutorial, in a folder of their own next to a checkout.
///
/// The folder must be outside the checkout: cargo would treat the board as a member of the
/// workspace. The crates of Bine are therefore built again.
struct Reader {
    folder: PathBuf,
    program: Source,
    server: Option<Program>,
}

impl Reader {
    fn new() -> Result<Self> {
        let folder = env::temp_dir().join(format!("bine-tutorial-{}", std::process::id()));
        fs::create_dir_all(folder.join(".cargo"))?;
        fs::write(folder.join(".cargo/config.toml"), profile::outside()?)?;
        unix::fs::symlink(paths::root(), folder.join("bine"))?;
        Ok(Self { folder, program: Source::default(), server: None })
    }

    fn read(&mut self, kind: &str, text: &str) -> Result<()> {
        match kind {
            "rust" => {
                self.program.take(text);
                fs::write(self.board().join("src/main.rs"), self.program.text())?;
            }
            "sh tutorial" => self.succeed(text)?,
            "sh tutorial server" => {
                self.stop()?;
                if text.contains("cargo run") {
                    self.succeed(&text.replace("cargo run", "cargo build"))?;
                }
                let mut server = self.shell(&format!("exec env {text}"));
                server.env("BINE_LISTEN", "127.0.0.1:0");
                self.server = Some(Program::start(server)?);
            }
            "sh tutorial stop" => {
                self.stop()?;
                self.succeed(text)?;
            }
            // Blocks for a different machine.
            "toml deployed" | "text" | "ini" => {}
            _ => anyhow::bail!("unknown kind of block: `{kind}`"),
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        self.server.take().map_or(Ok(()), Program::end)
    }

    fn succeed(&self, text: &str) -> Result<()> {
        let address = self.server.as_ref().map(|server| server.address().to_string());
        let text = text.replace(PORT, address.as_deref().unwrap_or(PORT));
        let output = self.shell(&text).output().context("cannot start sh")?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{text}\n{}\n{stdout}{stderr}", output.status);
        if text.starts_with("cargo new") {
            self.share()?;
        }
        Ok(())
    }

    /// Shares the lock file and the build output of the workspace with the board.
    fn share(&self) -> Result<()> {
        fs::copy(paths::root().join("Cargo.lock"), self.board().join("Cargo.lock"))?;
        unix::fs::symlink(paths::target(), self.board().join("target"))?;
        Ok(())
    }

    /// A shell in the folder of the user, with `bine` on the path.
    fn shell(&self, text: &str) -> Command {
        let path = env::var("PATH").unwrap_or_default();
        let board = self.board();
        let mut shell = Command::new("sh");
        shell
            .args(["-e", "-c", text])
            .current_dir(if board.exists() { &board } else { &self.folder })
            .env("PATH", format!("{}:{path}", paths::release("").display()))
            .env("CARGO_TARGET_DIR", paths::target())
            .env("CARGO_NET_OFFLINE", "true");
        shell
    }

    fn board(&self) -> PathBuf {
        self.folder.join("board")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.server = None;
        // A folder that cannot be removed is small, and in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A Rust file, built item by item.
#[derive(Default)]
struct Source(Vec<String>);

impl Source {
    /// Adds the items of a block; each replaces the item of the same name.
    fn take(&mut self, block: &str) {
        for item in items(block) {
            match self.0.iter_mut().find(|known| name(known) == name(&item)) {
                Some(known) => *known = item,
                None => self.0.push(item),
            }
        }
    }

    fn text(&self) -> String {
        self.0.join("\n")
    }
}

/// Splits a block into items. An item begins at the margin after an empty line.
fn items(block: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut follows_empty_line = false;
    for line in block.lines() {
        if follows_empty_line && !line.is_empty() && !line.starts_with(' ') {
            items.push(String::new());
        }
        follows_empty_line = line.is_empty();
        let item = items.last_mut().expect("the vector starts with one item");
        item.push_str(line);
        item.push('\n');
    }
    items
}

/// The kind and name of an item: `fn app`, `struct Message`, `css! mod style;`.
fn name(item: &str) -> String {
    let mut lines = item.lines().filter(|line| !line.starts_with("#["));
    let head = lines.next().unwrap_or_default();
    let head = head.split(['(', '{', ':', ';']).next().unwrap_or_default().trim_end();
    let module =
        lines.next().map(str::trim).filter(|line| head == "css!" && line.starts_with("mod "));
    format!("{head} {}", module.unwrap_or_default())
}

/// The fenced blocks of a step: their kind and their text.
fn blocks(step: &str) -> impl Iterator<Item = (&str, &str)> {
    step.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_the_item_of_the_same_name() {
        let mut source = Source::default();
        source.take("use a::*;\n\n#[page(\"/\")]\nfn one() {\n    1\n}\n\nfn two() {}\n");
        source.take("css! {\n    a {}\n}\n\ncss! {\n    mod style;\n\n    .b {}\n}");
        source.take("#[page(\"/\")]\nfn one(a: A) {\n    let a;\n\n    2\n}");
        let expected = "use a::*;\n\n\n#[page(\"/\")]\nfn one(a: A) {\n    let a;\n\n    2\n}\n\nfn two() {}\n\n\
            css! {\n    a {}\n}\n\n\ncss! {\n    mod style;\n\n    .b {}\n}\n";
        assert_eq!(source.text(), expected);
    }

    #[test]
    fn lists_blocks_with_their_kind() {
        let step = "1. A\n\n```sh tutorial\nls\n```\n\nb\n\n```text\nx\n```\n";
        let found: Vec<_> = blocks(step).collect();
        assert_eq!(found, [("sh tutorial", "ls"), ("text", "x")]);
    }
}
