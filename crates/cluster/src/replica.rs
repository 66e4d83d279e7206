//! The contract between the transport and the state machine that it carries.

use bytes::Bytes;

/// The state machine that all nodes of a cluster keep equal.
///
/// The transport calls all methods from its one thread. They must return soon: while one runs, the
/// node neither publishes nor renews its leases.
pub trait Replica: Send + Sync + 'static {
    /// Returns the first message of this node that the stream has not yet delivered and whose number
    /// is above `number`. Numbers begin above 0 and ascend by one.
    fn unconfirmed_after(&self, number: u64) -> Option<Outgoing>;

    /// Applies the message at this position. The transport calls it in the order of the stream, for
    /// each position exactly once and without gaps.
    ///
    /// After an error the state machine cannot continue, so the link ends.
    fn deliver(&self, position: u64, message: &[u8]) -> Result<(), String>;

    /// Learns of a change of the link.
    fn use_link(&self, link: &Link);

    /// Learns that the servers refuse a request of this node while the link is open. The text has the
    /// reason and the fix. Called at most once a minute. The default ignores it.
    fn warn(&self, _problem: &str) {}
}

/// A message that a node publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The number among the messages of the node.
    pub number: u64,
    /// The message; at most [`Cluster::max_message`](crate::Cluster::max_message) bytes.
    pub bytes: Bytes,
}

/// The relation of this node to the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// The node has caught up with the stream, follows it and can publish.
    Connected,
    /// The node may miss messages, or cannot publish. The text has the reason, for a person.
    CutOff(String),
    /// The node does not follow the stream any more. The text has the reason and the fix.
    Ended(String),
}
