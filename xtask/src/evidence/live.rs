//! Decides what the script of live pages must do in a real browser.

use anyhow::Result;

use super::{claims, evidence, script};
use crate::report::Tally;
use crate::{places, script as live, tools};

/// Looks at the script alone, against a server of the test's own that may break, and at actions and the
/// board with two browsers and with pages of other sites.
pub(super) fn judge(tally: &mut Tally) -> Result<()> {
    tally.check("the live script is what its files make", live::is_fresh());
    tally.check("the live script is small", live::is_small());
    claims(tally, script(tools::selenium(), "live_browser.py").arg(live::made()))?;
    claims(tally, script(tools::selenium(), "live_forms.py").arg(live::made()))?;
    let actions = places::release("examples/actions");
    claims(tally, script(tools::selenium(), "live_actions.py").arg(actions))?;
    let board = places::release("examples/board");
    claims(tally, script(tools::selenium(), "live_strangers.py").arg(&board))?;
    claims(
        tally,
        script(tools::selenium(), "live_board.py").arg(board).arg(evidence().join("screenshots")),
    )
}
