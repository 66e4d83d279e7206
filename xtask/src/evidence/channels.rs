//! Decides what others who read server-sent events must find in those of a channel.

use std::process::Command;

use anyhow::Result;

use super::program::Program;
use super::{browser, claims};
use crate::report::Tally;
use crate::{places, tools};

/// Lets a parser for Node, a library of Python and a browser follow the channel of an example.
pub(super) fn judge(tally: &mut Tally) -> Result<()> {
    let mut channels = Command::new(places::release("examples/channels"));
    channels.args(["--listen", "127.0.0.1:0"]);
    let channels = Program::start(channels)?;
    let url = channels.url("/");
    let script = |name: &str| places::root().join("xtask").join(name);

    let mut node = Command::new("node");
    node.arg(script("channels/events.mjs")).arg(tools::eventsource_parser()).arg(&url);
    claims(tally, &mut node)?;
    claims(tally, Command::new(tools::httpx_sse()).arg(script("channels/events.py")).arg(&url))?;
    claims(tally, browser("events.py").arg(&url).arg(script("channels/messages.json")))
}
