//! Runs the commands of the guide, chapter by chapter and in order.
//!
//! A block of `sh` runs in an empty folder and must succeed; a block of `sh server` is started and
//! runs until the chapter ends; a block of `toml` is saved as `bine.toml` and checked. The
//! documentation tests of `bine` compile the Rust blocks, and run them where possible.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{Folder, Program};

/// The address in the guide, which the tests replace by a free port.
const PORT: &str = "127.0.0.1:8080";

#[test]
fn runs_every_command_of_the_guide() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let mut chapters: Vec<_> =
        fs::read_dir(guide).unwrap().map(|entry| entry.unwrap().path()).collect();
    chapters.sort();
    assert!(chapters.iter().any(|chapter| chapter.ends_with("start.md")));
    for chapter in chapters {
        println!("{}:", chapter.display());
        Reader::new().follow(&fs::read_to_string(chapter).unwrap());
    }
}

/// A reader who runs the blocks of a chapter.
struct Reader {
    folder: Folder,
    servers: Vec<Program>,
}

impl Reader {
    fn new() -> Self {
        Self { folder: Folder::new(), servers: Vec::new() }
    }

    fn follow(mut self, chapter: &str) {
        for (kind, text) in blocks(chapter) {
            match kind {
                "sh server" => {
                    let mut server =
                        self.shell(&format!("exec {}", text.replace(PORT, "127.0.0.1:0")));
                    self.servers.push(Program::start(&mut server));
                }
                "sh" => {
                    let address = self.servers.last().map(|server| server.address().to_string());
                    let text = text.replace(PORT, address.as_deref().unwrap_or(PORT));
                    self.succeed(&text);
                }
                "toml" => {
                    self.folder.write("bine.toml", text.as_bytes());
                    self.succeed("bine check-config");
                }
                _ => {}
            }
        }
    }

    fn succeed(&self, text: &str) {
        let output = self.shell(text).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}\n{}\n{said}", output.status);
    }

    /// Returns a shell in the reader's folder, with the tested `bine` on its path.
    fn shell(&self, text: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_bine"));
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell
            .args(["-e", "-c", text])
            .current_dir(self.folder.join(""))
            .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
            .env_remove("LISTEN_FDS")
            .env_remove("LISTEN_PID");
        shell
    }
}

/// Returns the fenced blocks of a chapter: their language and text.
fn blocks(chapter: &str) -> impl Iterator<Item = (&str, &str)> {
    chapter.split("\n```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap())
}
