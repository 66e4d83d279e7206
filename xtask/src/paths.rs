//! Paths of the checkout, the build output and the installed tools.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the checkout.
pub(crate) fn root() -> &'static Path {
    // Cargo rebuilds this crate when the checkout moves, so the path stays valid.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in a folder of the checkout")
}

/// The target folder of cargo.
pub(crate) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// The folder of tools that are not Debian packages.
pub(crate) fn tools() -> PathBuf {
    target().join("tools")
}

/// A file of the release build.
pub(crate) fn release(file: &str) -> PathBuf {
    target().join("release").join(file)
}
