//! Checks WebSocket echo servers with third-party clients.

use std::process::Command;

use anyhow::Result;

use super::program::Program;
use super::{run_checks, tool_script};
use crate::report::Tally;
use crate::{paths, tools};

/// Connects a Python library, one for Node and a browser to the echo example of `crates/http`,
/// which is the protocol alone, and to a page of a program.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let mut echo = Command::new(paths::release("examples/echo"));
    echo.arg("127.0.0.1:0");
    listen(tally, &Program::start(echo)?, "/")?;
    let mut page = Command::new(paths::release("examples/socket"));
    page.args(["--listen", "127.0.0.1:0"]);
    listen(tally, &Program::start(page)?, "/socket")
}

fn listen(tally: &mut Tally, echo: &Program, path: &str) -> Result<()> {
    let url = format!("ws://{}{path}", echo.address());
    run_checks(tally, tool_script(tools::websockets(), "frames_websockets.py").arg(&url))?;
    run_checks(tally, tool_script("node", "frames_ws.mjs").arg(tools::ws()).arg(&url))?;
    run_checks(tally, tool_script(tools::selenium(), "frames_browser.py").arg(echo.url(path)))
}
