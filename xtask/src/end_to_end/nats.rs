//! A NATS server as a child process.

use anyhow::{Context, Result};
use bine_nats_server::{Folder, NatsServer};

use super::work_folder;
use crate::tools;

/// A NATS server with JetStream. Killed when dropped.
pub(super) struct Nats {
    _server: NatsServer,
    url: String,
}

impl Nats {
    /// Starts a server at a free port, with an empty folder.
    pub(super) fn start() -> Result<Self> {
        let folder = Folder::within(&work_folder())?;
        let server = NatsServer::spawn(tools::nats_server(), folder, &["--jetstream"])
            .context("cannot start a NATS server")?;
        Ok(Self { url: server.url(), _server: server })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}
