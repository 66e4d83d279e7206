//! The files of the static case: twenty of the kinds and sizes of a web page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::random::Random;
use crate::tools::{Workspace, output};

/// A file of the site.
pub(super) struct SiteFile {
    pub(super) name: &'static str,
    /// In KB (1 000 bytes).
    length: usize,
}

const fn file(name: &'static str, length: usize) -> SiteFile {
    SiteFile { name, length }
}

pub(super) const FILES: [SiteFile; 20] = [
    file("reset.css", 8),
    file("layout.css", 12),
    file("theme.css", 10),
    file("components.css", 200),
    file("utilities.css", 14),
    file("analytics.js", 12),
    file("helpers.js", 14),
    file("app.js", 40),
    file("vendor.js", 300),
    file("router.js", 15),
    file("header.html", 55),
    file("footer.html", 60),
    file("regular.woff2", 18),
    file("bold.woff2", 22),
    file("logo.svg", 15),
    file("icon-sprite.svg", 70),
    file("hero.webp", 45),
    file("thumb1.webp", 6),
    file("thumb2.webp", 6),
    file("manifest.json", 3),
];

/// The words of text files.
const WORDS: [&str; 24] = [
    "margin", "padding", "display", "flex", "function", "return", "const", "border", "color",
    "width", "height", "solid", "value", "event", "target", "index", "length", "import", "export",
    "default", "class", "span", "path", "fill",
];

impl SiteFile {
    /// Whether its kind is compressed already.
    pub(super) fn is_compressed(&self) -> bool {
        [".woff2", ".webp"].iter().any(|ending| self.name.ends_with(ending))
    }

    fn content(&self, random: &mut Random) -> Vec<u8> {
        let length = self.length * 1000;
        let mut content = Vec::with_capacity(length + 16);
        while content.len() < length {
            if self.is_compressed() {
                content.push(random.below(256) as u8);
                continue;
            }
            let word = WORDS[random.below(WORDS.len() as u64) as usize];
            content.extend_from_slice(word.as_bytes());
            // Some words have a number, and some end a line.
            match random.below(16) {
                0..5 => content.extend_from_slice(format!("-{}", random.below(256)).as_bytes()),
                5..8 => content.extend_from_slice(b";\n"),
                _ => {}
            }
            content.push(b' ');
        }
        content.truncate(length);
        content
    }
}

/// Writes the files, and the compressed variants of text, as gzip and brotli compress best.
pub(super) fn write(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.files().join("arena");
    fs::create_dir_all(&folder)?;
    let mut random = Random(1);
    for file in &FILES {
        let path = folder.join(file.name);
        fs::write(&path, file.content(&mut random))?;
        if !file.is_compressed() {
            compress("gzip", &["-9", "--keep", "--force"], &path)?;
            compress("brotli", &["--best", "--keep", "--force"], &path)?;
        }
    }
    Ok(folder)
}

fn compress(tool: &str, options: &[&str], path: &Path) -> Result<()> {
    output(Command::new(tool).args(options).arg(path)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_lengths_and_the_same_bytes_in_each_run() {
        let contents = || {
            let mut random = Random(1);
            FILES.iter().map(|file| file.content(&mut random)).collect::<Vec<_>>()
        };
        let all = contents();
        assert_eq!(all, contents());
        for (file, content) in FILES.iter().zip(&all) {
            assert_eq!(content.len(), file.length * 1000, "{}", file.name);
            assert_eq!(content.is_ascii(), !file.is_compressed(), "{}", file.name);
        }
        assert_eq!(all.iter().map(Vec::len).sum::<usize>(), 925_000);
    }
}
