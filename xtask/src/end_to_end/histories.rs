//! Checks a few histories of three nodes; `cargo xtask histories` runs a thousand.

use anyhow::Result;

use crate::report::Tally;
use crate::{histories, paths};

/// Runs one round, with all faults that are possible here.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    histories::run_round(&paths::release("examples/histories"))?;
    tally.check("twenty histories with faults are correct", Ok(()));
    Ok(())
}
