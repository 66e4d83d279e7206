//! Generates the table of the vocabulary crate from packages of npm.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{paths, process};

mod aria;
mod chosen;
mod css;
mod foreign;
mod html;
mod idl;
mod kind;
mod table;

/// An npm package with source data.
struct Package {
    name: &'static str,
    version: &'static str,
    license: &'static str,
    /// The owner that the license requires us to name.
    owner: &'static str,
}

const PACKAGES: [Package; 5] = [
    Package { name: "@webref/css", version: "8.7.5", license: "MIT", owner: "W3C" },
    Package { name: "@webref/elements", version: "2.9.0", license: "MIT", owner: "W3C" },
    Package { name: "@webref/idl", version: "3.85.0", license: "MIT", owner: "W3C" },
    Package { name: "aria-query", version: "5.3.2", license: "Apache-2.0", owner: "A11yance" },
    Package {
        name: "html-validate",
        version: "11.18.0",
        license: "MIT",
        owner: "David Sveningsson",
    },
];

/// Extracts data from the packages that are programs.
const FACTS: &str = include_str!("facts.cjs");

/// Downloads the packages and writes the table.
pub(crate) fn run() -> Result<()> {
    let work = paths::root().join("target/tools/vocabulary");
    for package in &PACKAGES {
        unpack(package, &work)?;
    }
    let facts = facts(&work)?;
    let read = |path: &str| -> Result<String> {
        fs::read_to_string(work.join(path)).with_context(|| path.to_owned())
    };
    let idl = |spec: &str| read(&format!("@webref/idl/package/{spec}.idl"));
    let elements = |spec: &str| -> Result<Value> {
        Ok(serde_json::from_str(&read(&format!("@webref/elements/package/{spec}.json"))?)?)
    };
    let css: Value = serde_json::from_str(&read("@webref/css/package/css.json")?)?;

    let interfaces = idl::Interfaces::read(idl)?;
    let mut table = table::Table::new(&PACKAGES);
    html::write(&mut table, &facts["html"], &elements("html")?, &interfaces)?;
    aria::write(&mut table, &facts)?;
    foreign::write(&mut table, &elements)?;
    css::write(&mut table, &css)?;

    let path = paths::root().join("crates/vocabulary/src/table.rs");
    fs::write(&path, table.finish()?).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    Ok(())
}

/// Downloads a package and unpacks it into a folder with the same name.
fn unpack(package: &Package, work: &Path) -> Result<()> {
    let folder = work.join(package.name);
    // Files of an older version must not remain.
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let spec = format!("{}@{}", package.name, package.version);
    process::run(Command::new("npm").args(["pack", "--silent", &spec]).current_dir(&folder))?;
    let flat = package.name.trim_start_matches('@').replace('/', "-");
    let archive = format!("{flat}-{}.tgz", package.version);
    process::run(Command::new("tar").args(["xzf", &archive]).current_dir(&folder))
}

/// The facts of the packages that are programs.
fn facts(work: &Path) -> Result<Value> {
    let script = work.join("facts.cjs");
    fs::write(&script, FACTS)?;
    let output =
        Command::new("node").arg(&script).arg(work).output().context("cannot start node")?;
    ensure!(output.status.success(), "node: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The strings of a JSON list.
fn words(list: &Value) -> Vec<&str> {
    list.as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str).collect()
}
