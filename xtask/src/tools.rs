//! Decides which tools the tests need beside Rust, and how each is come by.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{places, process};

/// Programs from Debian: a question only a working one answers, and the package it comes in.
const PROGRAMS: [(&str, &[&str], &str); 3] = [
    ("curl", &["--version"], "curl"),
    // libFuzzer is C++.
    ("c++", &["--version"], "g++"),
    ("python3", &["-c", "import ensurepip"], "python3-venv"),
];

/// The linter of HTTP messages; a newer one may judge differently, so the version is fixed.
const HTTPLINT: &str = "2026.10.4";
const CARGO_FUZZ: &str = "0.13.2";

/// Sees to it that everything is there. Needs the network only for what is missing.
pub(crate) fn install() -> Result<()> {
    install_packages()?;
    // A toolchain of rustup's smallest profile has neither.
    for (component, probe) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if !process::answers("cargo", &[probe, "--version"]) {
            process::run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    let httplint = httplint();
    if !httplint.exists() {
        process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(python()))?;
        let mut pip = Command::new(python().join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        process::run(pip.arg(format!("httplint=={HTTPLINT}")))?;
    }
    println!("httplint: {}", httplint.display());
    println!("cargo-fuzz: {}", cargo_fuzz()?.display());
    Ok(())
}

/// The linter's program, whether installed or not.
pub(crate) fn httplint() -> PathBuf {
    python().join("bin/httplint")
}

/// The fuzzer's program: the one on the path, else our own, built at first need.
pub(crate) fn cargo_fuzz() -> Result<PathBuf> {
    if process::answers("cargo-fuzz", &["--version"]) {
        return Ok(PathBuf::from("cargo-fuzz"));
    }
    let own = places::tools().join("bin/cargo-fuzz");
    if !own.exists() {
        let mut command = Command::new("cargo");
        command.args(["install", "--locked", "cargo-fuzz", "--version", CARGO_FUZZ]);
        process::run(command.arg("--root").arg(places::tools()))?;
    }
    Ok(own)
}

fn install_packages() -> Result<()> {
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, question, _)| !process::answers(program, question))
        .map(|(_, _, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !is_root()? || !Path::new("/usr/bin/apt-get").exists() {
        bail!("first run: sudo apt-get install --yes {}", missing.join(" "));
    }
    process::run(Command::new("apt-get").args(["update", "--quiet"]))?;
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive");
    install.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(missing);
    process::run(&mut install)
}

fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("--user").output().context("cannot start id")?;
    Ok(output.stdout.trim_ascii() == b"0")
}

/// The version is in the path, so that a new one is fetched and an old one not mistaken for it.
fn python() -> PathBuf {
    places::tools().join(format!("httplint-{HTTPLINT}"))
}
