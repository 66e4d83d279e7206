//! Checks that a browser reports no error in the pages of our programs.

use anyhow::Result;

use super::{run_checks, tool_script};
use crate::report::Tally;
use crate::{paths, tools};

/// Visits all pages of the demo and of the examples, with their default headers.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let examples =
        ["accounts", "actions", "board", "channels", "hello", "session", "socket", "uploads"]
            .map(|name| paths::release("examples").join(name));
    let programs = [paths::release("bine")].into_iter().chain(examples);
    run_checks(tally, tool_script(tools::selenium(), "console_browser.py").args(programs))
}
