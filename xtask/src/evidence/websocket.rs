//! Decides what others who speak WebSocket must find in a server that sends back what it hears.

use std::process::Command;

use anyhow::Result;

use super::program::Program;
use super::{claims, script};
use crate::report::Tally;
use crate::{places, tools};

/// Lets a library of Python, one of Node and a browser speak with the echo of `crates/http`, which is the machine alone,
/// and with a page of a program.
pub(super) fn judge(tally: &mut Tally) -> Result<()> {
    let mut echo = Command::new(places::release("examples/echo"));
    echo.arg("127.0.0.1:0");
    listen(tally, &Program::start(echo)?, "/")?;
    let mut page = Command::new(places::release("examples/socket"));
    page.args(["--listen", "127.0.0.1:0"]);
    listen(tally, &Program::start(page)?, "/socket")
}

fn listen(tally: &mut Tally, echo: &Program, path: &str) -> Result<()> {
    let url = format!("ws://{}{path}", echo.address());
    claims(tally, script(tools::websockets(), "frames_websockets.py").arg(&url))?;
    claims(tally, script("node", "frames_ws.mjs").arg(tools::ws()).arg(&url))?;
    claims(tally, script(tools::selenium(), "frames_browser.py").arg(echo.url(path)))
}
