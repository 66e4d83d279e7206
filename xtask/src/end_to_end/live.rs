//! Checks the script of live pages in a browser.

use anyhow::Result;

use super::{run_checks, tool_script, work_folder};
use crate::report::Tally;
use crate::script::{LIVE, TIMES};
use crate::{paths, tools};

/// Tests the script alone against a test server that may fail.
pub(super) fn check_script(tally: &mut Tally) -> Result<()> {
    tally.check("the live script matches its sources", LIVE.is_fresh());
    tally.check("the live script is small", LIVE.is_small());
    tally.check("the module of times matches its source", TIMES.is_fresh());
    tally.check("the module of times is small", TIMES.is_small());
    run_checks(tally, tool_script(tools::selenium(), "live_browser.py").arg(LIVE.bundle()))
}

/// Tests what the script does to forms, against the same test server.
pub(super) fn check_forms(tally: &mut Tally) -> Result<()> {
    run_checks(tally, tool_script(tools::selenium(), "live_forms.py").arg(LIVE.bundle()))
}

/// Tests actions, a new version of a program, and the board with two browsers and with pages of
/// foreign sites.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let actions = paths::release("examples/actions");
    run_checks(tally, tool_script(tools::selenium(), "live_actions.py").arg(actions))?;
    let times = paths::release("examples/times");
    run_checks(
        tally,
        tool_script(tools::selenium(), "times_browser.py")
            .arg(times)
            .arg(work_folder().join("screenshots")),
    )?;
    let board = paths::release("examples/board");
    run_checks(tally, tool_script(tools::selenium(), "live_attacks.py").arg(&board))?;
    let home = paths::release("examples/home");
    run_checks(
        tally,
        tool_script(tools::selenium(), "live_version.py")
            .arg(home)
            .arg(work_folder().join("screenshots")),
    )?;
    run_checks(
        tally,
        tool_script(tools::selenium(), "live_board.py")
            .arg(board)
            .arg(work_folder().join("screenshots")),
    )
}
