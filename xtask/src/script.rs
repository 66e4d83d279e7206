//! Decides how the script that pages carry is joined of its files and made small.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{places, process, tools};

/// In the order in which they are needed: nothing is used above the line that makes it.
const FILES: [&str; 7] =
    ["morph.js", "regions.js", "stream.js", "calls.js", "forms.js", "handlers.js", "live.js"];

/// What a page may cost its first visitor, compressed, in bytes.
const MOST: u64 = 6 * 1024;

/// What is called unsafe is so where built-in things are replaced, or `-0` and `NaN` matter; here they are not.
const COMPRESS: &str =
    "passes=6,unsafe,unsafe_arrows,unsafe_comps,unsafe_math,unsafe_methods,unsafe_undefined";

/// Makes the script again, and notes what it is made of.
pub(crate) fn run() -> Result<()> {
    tools::install_terser()?;
    let joined = joined()?;
    let small = small(&joined)?;
    fs::create_dir_all(place("made"))?;
    fs::write(made(), &small)?;
    fs::write(place("made/sources"), fingerprint(&joined))?;
    println!("{}: {} bytes, {} compressed", made().display(), small.len(), compressed()?);
    Ok(())
}

/// The script as it is served.
pub(crate) fn made() -> PathBuf {
    place("made/live.js")
}

/// What is kept must be what the tool makes of the files today.
pub(crate) fn is_fresh() -> Result<()> {
    ensure!(small(&joined()?)? == fs::read_to_string(made())?, "first run: cargo xtask script");
    Ok(())
}

/// It must stay small.
pub(crate) fn is_small() -> Result<()> {
    let compressed = compressed()?;
    ensure!(compressed <= MOST, "{compressed} bytes compressed, {MOST} are allowed");
    Ok(())
}

fn place(file: &str) -> PathBuf {
    places::root().join("crates/browser/src").join(file)
}

/// The files as one: their imports are of each other, and only the last one exports.
///
/// A line is all that this knows of JavaScript: each import and each export is one.
fn joined() -> Result<String> {
    let mut joined = String::new();
    for file in FILES {
        let path = place(file);
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

fn small(joined: &str) -> Result<String> {
    let work = places::target().join("script");
    fs::create_dir_all(&work)?;
    let source = work.join("live.js");
    fs::write(&source, joined)?;
    let mut terser = Command::new(tools::terser());
    terser.arg(source).args(["--module", "--mangle", "--ecma", "2022", "--compress", COMPRESS]);
    let output =
        terser.output().with_context(|| format!("cannot start {}", process::shown(&terser)))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    // A constant need not say that it is one, and one word for all compresses better. No text in the files has these.
    let mut small = String::from_utf8(output.stdout)?;
    for (long, short) in [("const ", "let "), ("const[", "let["), ("const{", "let{")] {
        small = small.replace(long, short);
    }
    Ok(small)
}

/// Bytes, as a server that compresses well would send them.
fn compressed() -> Result<u64> {
    let output = Command::new("gzip").args(["-9", "--no-name", "--stdout"]).arg(made()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout.len() as u64)
}

/// FNV-1a, as digits.
fn fingerprint(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}\n", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the tool this shows at least that nobody forgot it.
    #[test]
    fn the_script_is_made_of_the_files_beside_it() {
        let noted = fs::read_to_string(place("made/sources")).expect("it is kept");
        let joined = joined().expect("the files can be read");
        assert_eq!(fingerprint(&joined), noted, "first run: cargo xtask script");
    }
}
