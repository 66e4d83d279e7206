//! The build profile of the programs that end-to-end tests run.
//!
//! The tests need what the release profile means, such as a program without debug assertions, but
//! no optimization: it takes more time than it saves.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::paths;

/// Writes the configuration of cargo for these programs to the target folder, for its argument
/// `--config`, and returns the path.
pub(crate) fn file() -> Result<PathBuf> {
    let file = paths::target().join("end-to-end.toml");
    fs::create_dir_all(paths::target())?;
    fs::write(&file, release(&dev()?))?;
    Ok(file)
}

/// A configuration of cargo for a package outside the workspace: with it, the package shares what
/// the workspace has built of common dependencies.
pub(crate) fn outside() -> Result<String> {
    let dev = dev()?;
    Ok(format!("{dev}{}", release(&dev)))
}

/// The dev profile of the workspace.
fn dev() -> Result<String> {
    let manifest = fs::read_to_string(paths::root().join("Cargo.toml"))?;
    let sections = sections(&manifest, "profile.dev");
    ensure!(!sections.is_empty(), "Cargo.toml has no [profile.dev]");
    Ok(sections)
}

/// The sections of a manifest whose names start with `name`.
fn sections(manifest: &str, name: &str) -> String {
    let mut text = String::new();
    for section in manifest.split("\n[").filter(|section| section.starts_with(name)) {
        text += "[";
        text += section;
        text += "\n";
    }
    text
}

/// The settings of a dev profile as those of the release profile.
fn release(dev: &str) -> String {
    let settings = "[profile.release]\nopt-level = 0\nlto = \"off\"";
    dev.replace("[profile.dev]", settings).replace("[profile.dev.", "[profile.release.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_the_release_profile_with_the_settings_of_the_dev_profile() {
        let manifest = "[profile.small]\nlto = \"fat\"\n\n[profile.dev]\ndebug = false # quick\n\n\
                        [profile.dev.package.argon2]\nopt-level = 2\n\n[lints]\n";
        let release = release(&sections(manifest, "profile.dev"));
        let expected = "[profile.release]\nopt-level = 0\nlto = \"off\"\ndebug = false # quick\n\n\
                        [profile.release.package.argon2]\nopt-level = 2\n\n";
        assert_eq!(release, expected);
    }
}
