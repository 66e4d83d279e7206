//! Runs this program again in a separate network namespace, which ends with the program.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tools::{output, require};

/// Runs `command` of this program in a new network namespace. Returns only on failure.
pub(crate) fn enter(command: &str, words: &[String]) -> Result<()> {
    require("unshare", "util-linux")?;
    require("ip", "iproute2")?;
    let own = std::env::current_exe()?;
    let mut unshare = Command::new("unshare");
    // Without root, becomes root of a user namespace.
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare.args(["--net", "--"]).arg(own).arg(command).args(words.iter().map(OsString::from));
    Err(unshare.exec())
        .context("a network namespace is needed: run as root, or allow user namespaces")
}

/// Fails outside such a namespace, where a change would affect the whole machine.
pub(crate) fn ensure_own() -> Result<()> {
    let links = output(Command::new("ip").args(["-oneline", "link"]))?;
    let is_own = !links.lines().any(|line| line.contains(" eth") || line.contains(" en"));
    ensure!(is_own, "this is not a separate network namespace");
    Ok(())
}
