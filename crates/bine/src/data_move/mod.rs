//! Moves the data of a program from one machine into a cluster and back, for the command
//! `bine data move`.
//!
//! A move copies what the store holds as bytes, and the keys of sessions. It reads the copy back by the
//! code with which a server starts, and compares all of it. Only then does it give the copy the name by
//! which a server finds it. docs/decisions/0023-moving-data.md has the reasons.

mod inward;
mod outward;

use std::path::PathBuf;

use crate::channels::Channels;
use crate::cluster::link_options;
use crate::cluster_choices::ClusterChoices;
use crate::store::{ContentsSize, Warning};

pub use inward::move_into_cluster;
pub use outward::move_out_of_cluster;

/// The servers and the name of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterLocation {
    /// The URLs of NATS servers, separated by commas.
    pub servers: String,
    /// The name of the cluster; `None`: `bine`.
    pub name: Option<String>,
    /// The file of credentials for the NATS servers.
    pub credentials: Option<PathBuf>,
    /// The certificates of authorities to trust.
    pub authority: Option<PathBuf>,
    /// The certificate that is shown to the NATS servers.
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate; `None`: it is in the same file.
    pub certificate_key: Option<PathBuf>,
    /// The number of servers that store each change, for a new cluster.
    pub copies: u8,
}

/// A part of a move, for a display of progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveStep {
    /// The data is read.
    Read,
    /// The copy is written.
    Write,
    /// The copy is read back and compared.
    Verify,
}

/// Receives the progress of a step: bytes done, of bytes in all if they are known.
pub type MoveProgress<'p> = dyn FnMut(MoveStep, u64, Option<u64>) + Send + 'p;

/// What was moved and verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MoveSummary {
    /// The number of tables.
    pub tables: usize,
    /// The number of rows of all tables.
    pub rows: usize,
    /// The bytes of all rows.
    pub bytes: u64,
    /// The number of channels.
    pub channels: usize,
    /// The number of messages in all channels.
    pub messages: usize,
    /// The number of keys of sessions.
    pub session_keys: usize,
    /// Whether the cursors of channels are not valid any more.
    pub has_new_epoch: bool,
    /// The position in the stream of the cluster.
    pub position: u64,
    /// The ids of nodes that run. Their later changes are not in the folder.
    pub nodes: Vec<String>,
    /// Warnings from the read of a folder.
    pub warnings: Vec<Warning>,
}

impl ClusterLocation {
    /// The options of the link. `creates`: whether a missing cluster is created.
    fn link(&self, creates: bool) -> bine_cluster::Options {
        let choices = ClusterChoices {
            servers: Some(self.servers.clone()),
            name: self.name.clone(),
            node: Some(format!("data-move-{}", std::process::id())),
            copies: Some(self.copies),
            credentials: self.credentials.clone(),
            authority: self.authority.clone(),
            certificate: self.certificate.clone(),
            certificate_key: self.certificate_key.clone(),
            snapshot: None,
        };
        bine_cluster::Options { creates, ..link_options(&choices) }
    }
}

impl MoveSummary {
    fn of(size: ContentsSize, channels: &Channels) -> Self {
        let ContentsSize { tables, rows, bytes } = size;
        let (channels, messages) = channels.engine().size();
        Self {
            tables,
            rows,
            bytes,
            channels,
            messages,
            session_keys: 0,
            has_new_epoch: false,
            position: 0,
            nodes: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// Channels that hold a copy, without the limits of a server.
fn channels_of_copy() -> Channels {
    let channels = Channels::new();
    channels.engine().lift_memory_quotas();
    channels
}
