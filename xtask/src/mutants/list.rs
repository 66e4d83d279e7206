//! The mutants of a crate: cargo-mutants decides which changes there are.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{paths, process, tools};

/// A place in a source file, as cargo-mutants counts: lines and columns (characters) from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The body of a function becomes one expression.
    FunctionBody,
    BinaryOperator,
    /// An operator before an expression is deleted.
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    /// A field of a struct expression is deleted; the base after `..` provides it.
    StructField,
}

/// One change of one file.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    /// `crates/http/src/a.rs:12:3: replace a with b in c`.
    pub(super) name: String,
    /// Relative to the root of the checkout.
    pub(super) file: String,
    pub(super) kind: Kind,
    pub(super) start: Position,
    pub(super) end: Position,
    pub(super) replacement: String,
}

impl Mutant {
    /// The name without line and column, which every edit of the file changes: `file: change`.
    pub(super) fn key(&self) -> String {
        key(&self.name)
    }
}

/// The name of a mutant without line and column.
pub(super) fn key(name: &str) -> String {
    let Some((place, change)) = name.split_once(": ") else { return name.to_owned() };
    let file = place.split(':').next().unwrap_or(place);
    format!("{file}: {change}")
}

/// Lists the mutants of a crate of the workspace.
pub(super) fn list(package: &str) -> Result<Vec<Mutant>> {
    let mut command = Command::new(tools::cargo_mutants()?);
    command.args(["mutants", "--list", "--json", "--package", package]);
    let output = command.current_dir(paths::root()).output();
    let output =
        output.with_context(|| format!("cannot start {}", process::command_line(&command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("failed: {complaint}; to repeat: {}", process::command_line(&command));
    }
    let values: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let read = |value| read(value).with_context(|| format!("cannot read {value}"));
    let mut mutants = values.iter().map(read).collect::<Result<Vec<_>>>()?;
    // Helpers of tests are no code of the program.
    mutants.retain(|mutant| !mutant.file.ends_with("/test_support.rs"));
    Ok(mutants)
}

fn read(value: &Value) -> Result<Mutant> {
    let text = |name: &str| {
        value[name].as_str().map(str::to_owned).with_context(|| format!("no field {name}"))
    };
    let position = |name: &str| -> Result<Position> {
        let number = |part: &str| {
            let number = value["span"][name][part].as_u64().context("no position")?;
            anyhow::Ok(usize::try_from(number)?)
        };
        Ok(Position { line: number("line")?, column: number("column")? })
    };
    let kind = match text("genre")?.as_str() {
        "FnValue" => Kind::FunctionBody,
        "BinaryOperator" => Kind::BinaryOperator,
        "UnaryOperator" => Kind::UnaryOperator,
        "MatchArm" => Kind::MatchArm,
        "MatchArmGuard" => Kind::MatchArmGuard,
        "StructField" => Kind::StructField,
        other => bail!("unknown genre {other}; cargo-mutants has a new one"),
    };
    Ok(Mutant {
        name: text("name")?,
        file: text("file")?,
        kind,
        start: position("start")?,
        end: position("end")?,
        replacement: text("replacement")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_mutant_of_cargo_mutants() {
        let value = serde_json::json!({
            "name": "crates/a/src/b.rs:96:51: replace <= with > in C::d",
            "file": "crates/a/src/b.rs",
            "genre": "BinaryOperator",
            "replacement": ">",
            "span": {"start": {"line": 96, "column": 51}, "end": {"line": 96, "column": 53}},
        });
        let mutant = read(&value).unwrap();
        assert_eq!(mutant.kind, Kind::BinaryOperator);
        assert_eq!(mutant.start, Position { line: 96, column: 51 });
        assert_eq!(mutant.key(), "crates/a/src/b.rs: replace <= with > in C::d");
    }

    #[test]
    fn rejects_an_unknown_kind_of_mutant() {
        let value = serde_json::json!({
            "name": "a", "file": "b", "genre": "Sleep", "replacement": "",
            "span": {"start": {"line": 1, "column": 1}, "end": {"line": 1, "column": 2}},
        });
        assert!(read(&value).unwrap_err().to_string().contains("Sleep"));
    }
}
