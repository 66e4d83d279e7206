//! Decides which tools the tests need beside Rust, and how each is come by.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{places, process};

/// Programs from Debian: a question only a working one answers, and the package it comes in.
const PROGRAMS: [(&str, &[&str], &str); 8] = [
    ("curl", &["--version"], "curl"),
    // libFuzzer is C++.
    ("c++", &["--version"], "g++"),
    ("python3", &["-c", "import ensurepip"], "python3-venv"),
    ("chromium", &["--version"], "chromium"),
    ("chromedriver", &["--version"], "chromium-driver"),
    ("go", &["version"], "golang-go"),
    ("npm", &["--version"], "npm"),
    // It answers in the place of the kernel where a test wants a disk to fail.
    ("strace", &["--version"], "strace"),
];

/// The linter of HTTP messages; a newer one may judge differently, so the version is fixed.
const HTTPLINT: &str = "2026.10.4";
/// What drives the browser.
const SELENIUM: &str = "4.51.0";
const CARGO_FUZZ: &str = "0.13.2";
const CARGO_MUTANTS: &str = "27.1.0";
/// What finds mistakes in HTML; the last that the Node of Debian 12 runs.
const HTML_VALIDATE: &str = "9.7.1";
/// What makes the script of live pages small; another version may make another text.
const TERSER: &str = "5.51.2";
/// Two that speak WebSocket from the other end.
const WEBSOCKETS: &str = "17.4";
const WS: &str = "8.23.0";
/// The public suite of the Durable Streams protocol, and what runs it.
const STREAMS: &str = "0.3.6";
const VITEST: &str = "4.1.12";
/// That needs a newer Node than Debian 12 has; npm has one.
const NODE: &str = "20.20.2";
/// Two that read server-sent events; the last parser that the Node of Debian 12 runs.
const HTTPX_SSE: &str = "0.4.3";
const HTTPX: &str = "httpx==0.28.1";
const EVENTSOURCE_PARSER: &str = "3.1.1";
/// The authority that Let's Encrypt makes for tests of ACME.
const PEBBLE: &str = "2.10.1";

/// Sees to it that everything is there. Needs the network only for what is missing.
pub(crate) fn install() -> Result<()> {
    install_packages()?;
    // A toolchain of rustup's smallest profile has neither.
    for (component, probe) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if !process::answers("cargo", &[probe, "--version"]) {
            process::run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    for (name, version, beside) in [
        ("httplint", HTTPLINT, None),
        ("selenium", SELENIUM, None),
        ("websockets", WEBSOCKETS, None),
        ("httpx-sse", HTTPX_SSE, Some(HTTPX)),
    ] {
        let place = versioned(name, version);
        // Written last, so that a place is not taken for whole when its making broke off.
        let whole = place.join("whole");
        if !whole.exists() {
            process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&place))?;
            let mut pip = Command::new(place.join("bin/pip"));
            pip.args(["install", "--quiet", "--disable-pip-version-check"]);
            process::run(pip.arg(format!("{name}=={version}")).args(beside))?;
            fs::write(&whole, "")?;
        }
        println!("{name}: {}", place.display());
    }
    install_module("html-validate", HTML_VALIDATE, &html_validate())?;
    install_module("ws", WS, &ws())?;
    install_module("eventsource-parser", EVENTSOURCE_PARSER, &eventsource_parser())?;
    install_terser()?;
    install_streams()?;
    println!("cargo-fuzz: {}", cargo_fuzz()?.display());
    let pebble = pebble();
    if !pebble.exists() {
        let mut go = Command::new("go");
        go.arg("install")
            .arg(format!("github.com/letsencrypt/pebble/v2/cmd/pebble@v{PEBBLE}"))
            .env("GOBIN", pebble.parent().expect("the program lies in a folder of its own"));
        process::run(&mut go)?;
    }
    println!("pebble: {}", pebble.display());
    Ok(())
}

/// The same for what makes the script of live pages small alone.
pub(crate) fn install_terser() -> Result<()> {
    install_module("terser", TERSER, &terser())
}

/// The same for the suite of the Durable Streams protocol alone.
pub(crate) fn install_streams() -> Result<()> {
    let place = streams();
    // Written last, so that a place is not taken for whole when its making broke off.
    let whole = place.join(format!("whole on node {NODE}"));
    if !whole.exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(&place);
        npm.arg(format!("@durable-streams/server-conformance-tests@{STREAMS}"));
        process::run(npm.arg(format!("vitest@{VITEST}")).arg(format!("node@{NODE}")))?;
        fs::write(&whole, "")?;
    }
    println!("durable streams: {}", place.display());
    Ok(())
}

/// The folder that the suite is installed in, or will be.
pub(crate) fn streams() -> PathBuf {
    versioned("durable-streams", STREAMS)
}

/// The authority's program, whether installed or not.
pub(crate) fn pebble() -> PathBuf {
    versioned("pebble", PEBBLE).join("pebble")
}

/// The linter's program, whether installed or not.
pub(crate) fn httplint() -> PathBuf {
    versioned("httplint", HTTPLINT).join("bin/httplint")
}

/// The validator's program, whether installed or not.
pub(crate) fn html_validate() -> PathBuf {
    versioned("html-validate", HTML_VALIDATE).join("node_modules/.bin/html-validate")
}

/// The library's module for Node, whether installed or not.
pub(crate) fn ws() -> PathBuf {
    versioned("ws", WS).join("node_modules/ws/wrapper.mjs")
}

/// What makes JavaScript small, whether installed or not.
pub(crate) fn terser() -> PathBuf {
    versioned("terser", TERSER).join("node_modules/.bin/terser")
}

/// A Python that speaks WebSocket, whether installed or not.
pub(crate) fn websockets() -> PathBuf {
    versioned("websockets", WEBSOCKETS).join("bin/python3")
}

/// A parser of server-sent events as a module for Node, whether installed or not.
pub(crate) fn eventsource_parser() -> PathBuf {
    let place = versioned("eventsource-parser", EVENTSOURCE_PARSER);
    place.join("node_modules/eventsource-parser/dist/index.js")
}

/// A Python that reads server-sent events, whether installed or not.
pub(crate) fn httpx_sse() -> PathBuf {
    versioned("httpx-sse", HTTPX_SSE).join("bin/python3")
}

/// A Python that can drive the browser, whether installed or not.
pub(crate) fn selenium() -> PathBuf {
    versioned("selenium", SELENIUM).join("bin/python3")
}

/// The fuzzer's program: the one on the path, else our own, built at first need.
pub(crate) fn cargo_fuzz() -> Result<PathBuf> {
    cargo_tool("cargo-fuzz", CARGO_FUZZ)
}

/// What mutates code: the one on the path, else our own, built at first need.
pub(crate) fn cargo_mutants() -> Result<PathBuf> {
    cargo_tool("cargo-mutants", CARGO_MUTANTS)
}

fn cargo_tool(name: &str, version: &str) -> Result<PathBuf> {
    if process::answers(name, &["--version"]) {
        return Ok(PathBuf::from(name));
    }
    let own = places::tools().join("bin").join(name);
    if !own.exists() {
        let mut command = Command::new("cargo");
        command.args(["install", "--locked", name, "--version", version]);
        process::run(command.arg("--root").arg(places::tools()))?;
    }
    Ok(own)
}

/// A package of npm, unless its `part` is there.
fn install_module(name: &str, version: &str, part: &Path) -> Result<()> {
    if !part.exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(versioned(name, version))
            .arg(format!("{name}@{version}"));
        process::run(&mut npm)?;
    }
    println!("{name}: {}", part.display());
    Ok(())
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
fn versioned(name: &str, version: &str) -> PathBuf {
    places::tools().join(format!("{name}-{version}"))
}
