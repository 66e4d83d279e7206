//! Builds the scripts of pages: joins the source files of each and minifies them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{paths, process, tools};

/// A script as the server sends it.
pub(crate) struct Script {
    /// Its file in `made`.
    name: &'static str,
    /// The file in `made` with the fingerprint of its sources.
    sources: &'static str,
    /// In the order of their dependencies: each file uses only names of earlier files.
    files: &'static [&'static str],
    /// The size limit of the compressed script, in bytes.
    most: u64,
}

/// The script of live pages.
pub(crate) const LIVE: Script = Script {
    name: "live.js",
    sources: "sources",
    files: &[
        "morph.js",
        "regions.js",
        "stream.js",
        "calls.js",
        "forms.js",
        "handlers.js",
        "channels.js",
        "live.js",
    ],
    // A sixth runs the handlers of applications in TSX, and follows channels.
    most: 8 * 1000,
};

/// The module that shows times.
pub(crate) const TIMES: Script =
    Script { name: "times.js", sources: "times-sources", files: &["times.js"], most: 1024 };

/// These options are unsafe only where built-in objects are replaced, or where `-0` and `NaN`
/// matter. This script does neither.
const COMPRESS: &str =
    "passes=6,unsafe,unsafe_arrows,unsafe_comps,unsafe_math,unsafe_methods,unsafe_undefined";

/// Rebuilds the scripts and records a fingerprint of the sources of each.
pub(crate) fn run() -> Result<()> {
    tools::install_terser()?;
    fs::create_dir_all(source_path("made"))?;
    for script in [LIVE, TIMES] {
        let joined = script.joined()?;
        let (minified, bundle) = (minify(&joined)?, script.bundle());
        fs::write(&bundle, &minified)?;
        fs::write(script.recorded(), fingerprint(&joined))?;
        let compressed = script.compressed_size()?;
        println!("{}: {} bytes, {compressed} compressed", bundle.display(), minified.len());
    }
    Ok(())
}

impl Script {
    /// The path of the script as the server sends it.
    pub(crate) fn bundle(&self) -> PathBuf {
        source_path("made").join(self.name)
    }

    /// Checks that the committed script is the output of the minifier for the current sources.
    pub(crate) fn is_fresh(&self) -> Result<()> {
        let committed = fs::read_to_string(self.bundle())?;
        ensure!(minify(&self.joined()?)? == committed, "first run: cargo xtask script");
        Ok(())
    }

    /// Checks the size of the script.
    pub(crate) fn is_small(&self) -> Result<()> {
        let (compressed, most) = (self.compressed_size()?, self.most);
        ensure!(compressed <= most, "{compressed} bytes compressed; the limit is {most}");
        Ok(())
    }

    /// The path of the recorded fingerprint.
    fn recorded(&self) -> PathBuf {
        source_path("made").join(self.sources)
    }

    /// The sources as one file. They import only each other, and only the last one exports.
    ///
    /// This works line by line: each import and each export is one line.
    fn joined(&self) -> Result<String> {
        let mut joined = String::new();
        for file in self.files {
            let path = source_path(file);
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            for line in text.lines().filter(|line| !line.starts_with("import ")) {
                match line.strip_prefix("export ") {
                    Some(rest) if !rest.starts_with('{') => joined.push_str(rest),
                    _ => joined.push_str(line),
                }
                joined.push('\n');
            }
        }
        Ok(joined)
    }

    /// The size in bytes after compression with `gzip -9`.
    fn compressed_size(&self) -> Result<u64> {
        let mut gzip = Command::new("gzip");
        let output = gzip.args(["-9", "--no-name", "--stdout"]).arg(self.bundle()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout.len() as u64)
    }
}

fn source_path(file: &str) -> PathBuf {
    paths::root().join("crates/browser/src").join(file)
}

fn minify(joined: &str) -> Result<String> {
    let work = paths::target().join("script");
    fs::create_dir_all(&work)?;
    let source = work.join("live.js");
    fs::write(&source, joined)?;
    let mut terser = Command::new(tools::terser());
    terser.arg(source).args(["--module", "--mangle", "--ecma", "2022", "--compress", COMPRESS]);
    let output = terser
        .output()
        .with_context(|| format!("cannot start {}", process::command_line(&terser)))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    // `let` in place of `const` has the same effect here and compresses better. No string in the
    // files has these words.
    let mut minified = String::from_utf8(output.stdout)?;
    for (long, short) in [("const ", "let "), ("const[", "let["), ("const{", "let{")] {
        minified = minified.replace(long, short);
    }
    Ok(minified)
}

/// FNV-1a, in hexadecimal digits.
fn fingerprint(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}\n", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the minifier, this at least shows that the scripts are not out of date.
    #[test]
    fn the_scripts_match_their_sources() {
        for script in [LIVE, TIMES] {
            let recorded =
                fs::read_to_string(script.recorded()).expect("the fingerprint is committed");
            let joined = script.joined().expect("the files can be read");
            assert_eq!(fingerprint(&joined), recorded, "first run: cargo xtask script");
        }
    }
}
