//! Arrivals without a listener.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{Arrival, CountGuard, Progress};
use crate::address::ClientAddress;
use crate::server::Server;

/// A new connection of `peer`, which the server counts.
pub(crate) fn arrival(server: &Arc<Server>, socket: OwnedFd, peer: ClientAddress) -> Arrival {
    server.census.enter(peer).unwrap();
    let counted = CountGuard { server: Arc::clone(server), peer };
    Arrival { progress: Progress::New(socket), peer, counted }
}
