//! Builds the script of live pages: joins its source files and minifies them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{paths, process, tools};

/// In the order of their dependencies: each file uses only names of earlier files.
const FILES: [&str; 7] =
    ["morph.js", "regions.js", "stream.js", "calls.js", "forms.js", "handlers.js", "live.js"];

/// The size limit of the compressed script, in bytes. Taking a new version of the program, and
/// hiding the page of a login that has ended, need 263 of them.
const MOST: u64 = 6 * 1024 + 512;

/// These options are unsafe only where built-in objects are replaced, or where `-0` and `NaN`
/// matter. This script does neither.
const COMPRESS: &str =
    "passes=6,unsafe,unsafe_arrows,unsafe_comps,unsafe_math,unsafe_methods,unsafe_undefined";

/// Rebuilds the script and records a fingerprint of its sources.
pub(crate) fn run() -> Result<()> {
    tools::install_terser()?;
    let joined = joined()?;
    let minified = minify(&joined)?;
    fs::create_dir_all(source_path("made"))?;
    fs::write(bundle(), &minified)?;
    fs::write(source_path("made/sources"), fingerprint(&joined))?;
    println!("{}: {} bytes, {} compressed", bundle().display(), minified.len(), compressed_size()?);
    Ok(())
}

/// The path of the script as the server sends it.
pub(crate) fn bundle() -> PathBuf {
    source_path("made/live.js")
}

/// Checks that the committed script is the output of the minifier for the current sources.
pub(crate) fn is_fresh() -> Result<()> {
    ensure!(minify(&joined()?)? == fs::read_to_string(bundle())?, "first run: cargo xtask script");
    Ok(())
}

/// Checks the size of the script.
pub(crate) fn is_small() -> Result<()> {
    let compressed = compressed_size()?;
    ensure!(compressed <= MOST, "{compressed} bytes compressed; the limit is {MOST}");
    Ok(())
}

fn source_path(file: &str) -> PathBuf {
    paths::root().join("crates/browser/src").join(file)
}

/// The sources as one file. They import only each other, and only the last one exports.
///
/// This works line by line: each import and each export is one line.
fn joined() -> Result<String> {
    let mut joined = String::new();
    for file in FILES {
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

/// The size in bytes after compression with `gzip -9`.
fn compressed_size() -> Result<u64> {
    let output =
        Command::new("gzip").args(["-9", "--no-name", "--stdout"]).arg(bundle()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout.len() as u64)
}

/// FNV-1a, in hexadecimal digits.
fn fingerprint(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}\n", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the minifier, this at least shows that the script is not out of date.
    #[test]
    fn the_script_matches_its_sources() {
        let recorded =
            fs::read_to_string(source_path("made/sources")).expect("the fingerprint is committed");
        let joined = joined().expect("the files can be read");
        assert_eq!(fingerprint(&joined), recorded, "first run: cargo xtask script");
    }
}
