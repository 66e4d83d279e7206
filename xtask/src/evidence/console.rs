//! Decides that a real browser finds nothing wrong with the pages of our programs.

use anyhow::Result;

use super::{claims, script};
use crate::report::Tally;
use crate::{places, tools};

/// Visits all pages of the demo and of the examples under the headers that they have by default.
pub(super) fn judge(tally: &mut Tally) -> Result<()> {
    let examples = ["actions", "board", "channels", "hello", "session", "socket", "uploads"]
        .map(|name| places::release("examples").join(name));
    let programs = [places::release("bine")].into_iter().chain(examples);
    claims(tally, script(tools::selenium(), "console_browser.py").args(programs))
}
