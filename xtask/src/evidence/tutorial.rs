//! Decides that whoever follows the tutorial gets what it says, from `cargo new` to the copy of a board that is served.
//!
//! Of its blocks, `rust` are items of `src/main.rs`, each in the place of the one that had its name; `sh tutorial` is
//! typed and must succeed; `sh tutorial server` is left running until another is, or one of `sh tutorial stop` comes. So
//! each step is built, started and asked, with what the steps before have left on the disk.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, os::unix};

use anyhow::{Context, Result, ensure};

use super::program::Program;
use crate::report::Tally;
use crate::{places, process};

/// The address that the guide uses; a free port takes its place.
const PORT: &str = "127.0.0.1:8080";

/// Builds `bine` and does all that the tutorial says.
pub(crate) fn run() -> Result<()> {
    let mut cargo = Command::new("cargo");
    process::run(cargo.args(["build", "--release"]).current_dir(places::root()))?;
    let mut tally = Tally::default();
    follow(&mut tally)?;
    ensure!(tally.failed == 0, "the tutorial does not work");
    Ok(())
}

/// Does all that the tutorial says. What fails ends it, since the next step stands on it.
pub(crate) fn follow(tally: &mut Tally) -> Result<()> {
    let chapter = fs::read_to_string(places::root().join("docs/guide/tutorial.md"))?;
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

/// Somebody who does what the tutorial says, in a folder of their own beside a checkout.
///
/// It must not lie in the checkout: cargo would take the board for a part of it.
struct Reader {
    folder: PathBuf,
    program: Source,
    server: Option<Program>,
}

impl Reader {
    fn new() -> Result<Self> {
        let folder = env::temp_dir().join(format!("bine-tutorial-{}", std::process::id()));
        fs::create_dir(&folder)?;
        unix::fs::symlink(places::root(), folder.join("bine"))?;
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
            // What is done on another machine.
            "toml deployed" | "text" | "ini" => {}
            _ => anyhow::bail!("a block of `{kind}` is nothing to do"),
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
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "{text}\n{}\n{out}{err}", output.status);
        if text.starts_with("cargo new") {
            self.share()?;
        }
        Ok(())
    }

    /// What the workspace has built and chosen is good for the board too.
    fn share(&self) -> Result<()> {
        fs::copy(places::root().join("Cargo.lock"), self.board().join("Cargo.lock"))?;
        unix::fs::symlink(places::target(), self.board().join("target"))?;
        Ok(())
    }

    /// The shell where the reader is, with `bine` at hand.
    fn shell(&self, text: &str) -> Command {
        let path = env::var("PATH").unwrap_or_default();
        let board = self.board();
        let mut shell = Command::new("sh");
        shell
            .args(["-e", "-c", text])
            .current_dir(if board.exists() { &board } else { &self.folder })
            .env("PATH", format!("{}:{path}", places::release("").display()))
            .env("CARGO_TARGET_DIR", places::target())
            .env("CARGO_NET_OFFLINE", "true")
            // As the workspace builds, or all that the tests need would be built again.
            .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
            // Whether it builds and serves is asked here; how fast takes longer to build than all else.
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256");
        shell
    }

    fn board(&self) -> PathBuf {
        self.folder.join("board")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.server = None;
        // What stays behind is small, and in a folder for such things.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A file of Rust that grows by items.
#[derive(Default)]
struct Source(Vec<String>);

impl Source {
    /// Takes a block's items, each in the place of the one that has its name.
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

/// An item begins at the margin, behind an empty line.
fn items(block: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut is_behind_a_gap = false;
    for line in block.lines() {
        if is_behind_a_gap && !line.is_empty() && !line.starts_with(' ') {
            items.push(String::new());
        }
        is_behind_a_gap = line.is_empty();
        let item = items.last_mut().expect("there is one from the beginning");
        item.push_str(line);
        item.push('\n');
    }
    items
}

/// What an item is called, with its kind: `fn app`, `struct Message`, `css! mod style;`.
fn name(item: &str) -> String {
    let mut lines = item.lines().filter(|line| !line.starts_with("#["));
    let head = lines.next().unwrap_or_default();
    let head = head.split(['(', '{', ':', ';']).next().unwrap_or_default().trim_end();
    let module =
        lines.next().map(str::trim).filter(|line| head == "css!" && line.starts_with("mod "));
    format!("{head} {}", module.unwrap_or_default())
}

/// The fenced blocks of a step: what they are, and their text.
fn blocks(step: &str) -> impl Iterator<Item = (&str, &str)> {
    step.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_takes_the_place_of_the_one_that_had_its_name() {
        let mut source = Source::default();
        source.take("use a::*;\n\n#[page(\"/\")]\nfn one() {\n    1\n}\n\nfn two() {}\n");
        source.take("css! {\n    a {}\n}\n\ncss! {\n    mod style;\n\n    .b {}\n}");
        source.take("#[page(\"/\")]\nfn one(a: A) {\n    let a;\n\n    2\n}");
        let wanted = "use a::*;\n\n\n#[page(\"/\")]\nfn one(a: A) {\n    let a;\n\n    2\n}\n\nfn two() {}\n\n\
            css! {\n    a {}\n}\n\n\ncss! {\n    mod style;\n\n    .b {}\n}\n";
        assert_eq!(source.text(), wanted);
    }

    #[test]
    fn each_block_is_told_with_its_kind() {
        let step = "1. A\n\n```sh tutorial\nls\n```\n\nb\n\n```text\nx\n```\n";
        let found: Vec<_> = blocks(step).collect();
        assert_eq!(found, [("sh tutorial", "ls"), ("text", "x")]);
    }
}
