//! Decides that a real browser runs no script of what clients have stored.

use anyhow::Result;

use super::{claims, script};
use crate::report::Tally;
use crate::{places, tools};

/// Opens channels and uploaded files in every way in which a browser might run them.
pub(super) fn judge(tally: &mut Tally) -> Result<()> {
    let programs = ["channels", "uploads"].map(|name| places::release("examples").join(name));
    claims(tally, script(tools::selenium(), "inert_browser.py").args(programs))
}
