//! Decides what others who read server-sent events must find in those of a channel.

use std::process::Command;

use anyhow::Result;

use super::program::Program;
use super::{claims, script};
use crate::report::Tally;
use crate::{places, tools};

/// Lets a parser for Node, a library of Python and a browser follow the channel of an example.
pub(super) fn judge(tally: &mut Tally) -> Result<()> {
    let mut channels = Command::new(places::release("examples/channels"));
    channels.args(["--listen", "127.0.0.1:0"]);
    let channels = Program::start(channels)?;
    let url = channels.url("/");
    let parser = tools::eventsource_parser();

    claims(tally, script("node", "events_parser.mjs").arg(parser).arg(&url))?;
    claims(tally, script(tools::httpx_sse(), "events_httpx.py").arg(&url))?;
    claims(tally, script(tools::selenium(), "events_browser.py").arg(&url))
}
