//! Checks applications in TSX with browsers: the one that `bine new` writes.

use anyhow::Result;

use super::{run_checks, tool_script, work_folder};
use crate::report::Tally;
use crate::{paths, tools};

/// Tests the new board: posts, a crash of the server, changed files, and its look.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    run_checks(
        tally,
        tool_script(tools::selenium(), "script_board.py")
            .arg(paths::release("bine"))
            .arg(work_folder().join("screenshots")),
    )
}
