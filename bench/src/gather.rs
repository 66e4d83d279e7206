//! Decides how a copy is measured beside writev: by a program of its own, which makes nothing but these system calls.

use std::process::Command;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::machine;
use crate::tools::{Workshop, output};

/// Prints the table of `gather.c`.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let rounds = arguments.number("--rounds", 101)?;
    let facts = machine::facts();
    let shop = Workshop::open()?;
    let program = shop.compile("gather", &[])?;
    print!("{facts}\n\n{}", output(Command::new(program).arg(rounds.to_string()))?);
    Ok(())
}
