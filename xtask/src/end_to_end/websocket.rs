//! Checks WebSocket echo servers with third-party clients.

use std::process::Command;

use anyhow::Result;

use super::program::Program;
use super::{run_checks, site, tool_script};
use crate::report::Tally;
use crate::{paths, tools};

/// Connects a Python library, one for Node and a browser to the echo example of `crates/http`,
/// which is the protocol alone, to a page of a program, and to that page behind the reverse proxy.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let mut echo = Command::new(paths::release("examples/echo"));
    echo.arg("127.0.0.1:0");
    listen(tally, &Program::start(echo)?, "/")?;
    let mut page = Command::new(paths::release("examples/socket"));
    page.args(["--listen", "127.0.0.1:0"]);
    let page = Program::start(page)?;
    listen(tally, &page, "/socket")?;
    check_http2(tally, &page)?;
    let mut proxy = Command::new(paths::release("bine"));
    proxy.arg("serve").arg(site()?).args(["--listen", "127.0.0.1:0"]);
    // The page compares the origin of the browser's page with the host of the request.
    proxy.arg("--proxy").arg(format!("path=/socket to=http://{}", page.address()));
    let proxy = Program::start(proxy)?;
    listen(tally, &proxy, "/socket")?;
    check_http2(tally, &proxy)
}

/// Connects the client of Node over HTTP/2.
fn check_http2(tally: &mut Tally, server: &Program) -> Result<()> {
    run_checks(tally, tool_script("node", "frames_http2.mjs").arg(server.url("/socket")))
}

fn listen(tally: &mut Tally, echo: &Program, path: &str) -> Result<()> {
    let url = format!("ws://{}{path}", echo.address());
    run_checks(tally, tool_script(tools::websockets(), "frames_websockets.py").arg(&url))?;
    run_checks(tally, tool_script("node", "frames_ws.mjs").arg(tools::ws()).arg(&url))?;
    run_checks(tally, tool_script(tools::selenium(), "frames_browser.py").arg(echo.url(path)))
}
