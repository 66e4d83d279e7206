//! Checks the limits of columns that forms show to the browser.

use anyhow::Result;

use super::{run_checks, tool_script};
use crate::report::Tally;
use crate::{paths, tools};

/// Fills in the form of an example with allowed and forbidden values.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let program = paths::release("examples").join("services");
    run_checks(tally, tool_script(tools::selenium(), "limits_browser.py").arg(program))
}
