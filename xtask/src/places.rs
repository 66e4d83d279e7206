//! Decides where things lie: the checkout, what cargo builds, the tools fetched for tests.

use std::env;
use std::path::{Path, PathBuf};

/// The top of the checkout.
pub(crate) fn root() -> &'static Path {
    // Cargo rebuilds this crate when the checkout moves, so the path cannot grow stale.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in a folder of the checkout")
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// Where tools that are not Debian packages are installed.
pub(crate) fn tools() -> PathBuf {
    target().join("tools")
}

/// A file of the release build.
pub(crate) fn release(file: &str) -> PathBuf {
    target().join("release").join(file)
}
