//! Checks functions of TSX pages that run in the browser.

use anyhow::Result;

use super::{run_checks, tool_script};
use crate::report::Tally;
use crate::{paths, tools};

/// Runs the same checks in Chromium and in Firefox, one after the other: each uses a core and more.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let (bine, site) = (paths::release("bine"), paths::root().join("xtask/test-tools/handlers"));
    for browser in ["Chromium", "Firefox"] {
        for script in ["script_handlers.py", "script_words.py"] {
            let mut command = tool_script(tools::selenium(), script);
            run_checks(tally, command.arg(browser).arg(&bine).arg(&site))?;
        }
    }
    Ok(())
}
