//! Checks that a browser runs no script in content that clients stored.

use anyhow::Result;

use super::{run_checks, tool_script};
use crate::report::Tally;
use crate::{paths, tools};

/// Opens channels and uploaded files in every way in which a browser might run them.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let programs = ["channels", "uploads"].map(|name| paths::release("examples").join(name));
    run_checks(tally, tool_script(tools::selenium(), "inert_browser.py").args(programs))
}
