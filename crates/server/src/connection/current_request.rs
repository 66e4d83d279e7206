//! The request that a connection answers, while its head is in a buffer of the thread.

use std::ops::Range;

use bine_http::HeadIndex;

use crate::address::ClientAddress;
use crate::handler::Identity;

/// The position in the scratch buffer of the head that the request stage found.
pub(crate) struct CurrentRequest {
    pub(crate) head: Range<usize>,
    pub(crate) index: Option<HeadIndex>,
    pub(crate) identity: Identity,
    /// The client, as a trusted proxy reports it.
    pub(crate) peer: ClientAddress,
}

impl Default for CurrentRequest {
    fn default() -> Self {
        Self { head: 0..0, index: None, identity: Identity::Anonymous, peer: ClientAddress::UNIX }
    }
}
