//! Checks the server-sent events of channels with third-party clients.

use std::process::Command;

use anyhow::Result;

use super::program::Program;
use super::{run_checks, tool_script};
use crate::report::Tally;
use crate::{paths, tools};

/// Subscribes to the channel of an example with a parser for Node, a Python library and a browser.
pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let mut channels = Command::new(paths::release("examples/channels"));
    channels.args(["--listen", "127.0.0.1:0"]);
    let channels = Program::start(channels)?;
    let url = channels.url("/");
    let parser = tools::eventsource_parser();

    run_checks(tally, tool_script("node", "events_parser.mjs").arg(parser).arg(&url))?;
    run_checks(tally, tool_script(tools::httpx_sse(), "events_httpx.py").arg(&url))?;
    run_checks(tally, tool_script(tools::selenium(), "events_browser.py").arg(&url))
}
