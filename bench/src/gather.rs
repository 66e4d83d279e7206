//! Compares a copy with writev, in a separate program that makes only these system calls.

use std::process::Command;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::machine;
use crate::tools::{Workspace, output};

/// Prints the table of `gather.c`.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let rounds = arguments.number("--rounds", 101)?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    let program = workspace.compile("gather", &[])?;
    print!("{facts}\n\n{}", output(Command::new(program).arg(rounds.to_string()))?);
    Ok(())
}
