//! The floor: a server that does no work and sends the bytes of a real server, to show how much the
//! load generator can do.

use std::fs;

use anyhow::{Context, Result};

use crate::peer::Peer;
use crate::servers::{Content, Running, Server, Setting, free_port};
use crate::tools::Workspace;

/// Starts it on core 0 with the response of `example` for `path`, and stops that server.
pub(crate) fn start(workspace: &Workspace, example: Vec<Running>, path: &str) -> Result<Running> {
    let port = example.last().context("no server")?.port;
    let canned = workspace.work.join("floor.answer");
    fs::write(&canned, Peer::connect(port)?.get(path)?)?;
    example.into_iter().rev().try_for_each(Running::stop)?;
    // The floor sends the canned response, whatever the content.
    let (content, port) = (Content::Page, free_port()?);
    Server::Limit.build(workspace, content)?;
    let setting = Setting { content, port, loops: 1, canned: Some(&canned) };
    let words = Server::Limit.command(workspace, &setting)?;
    let log = workspace.work.join("floor.log");
    Running::start(&words, port, path, &log).context("the floor did not start")
}
