//! Checks the pages of accounts in a browser.

use anyhow::Result;

use super::{run_checks, tool_script};
use crate::report::Tally;
use crate::{paths, tools};

/// Signs up, logs in and out in two tabs, is throttled, and sets a forgotten password.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let program = paths::release("examples").join("accounts");
    run_checks(tally, tool_script(tools::selenium(), "accounts_browser.py").arg(program))
}
