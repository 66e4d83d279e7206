//! Several nodes: the store of a program follows a stream that all nodes of a cluster share.
//!
//! The store knows no network and the transport no tables; this subsystem connects them. Channels,
//! sessions and live pages are in the store, so they are the same on all nodes.

mod node;
mod subsystem;
mod upload;

pub(crate) use node::{ClusterNode, connect, link_options};
pub(crate) use upload::upload;
