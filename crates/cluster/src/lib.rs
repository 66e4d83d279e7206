//! The stream that several nodes share: a replicated log, snapshots, membership and leases over NATS
//! JetStream.
//!
//! Every node of a cluster has a [`Replica`]: a state machine that applies messages. A [`Cluster`]
//! publishes the messages of its replica to one stream, and delivers the messages of all nodes to
//! it, in one order, each position exactly once and without gaps. So equal replicas stay equal.
//!
//! - **Publishing** happens at least once. A message may appear in the stream twice, or after a later
//!   message of the same node that the network delivered first. The replica numbers its messages,
//!   ignores a repeated number and refuses a number after a gap. It does so while it applies the
//!   stream, so that all nodes decide the same.
//! - **A cut-off node** keeps its state, but learns of no new message. It reports [`Link::CutOff`]
//!   within about three seconds, and [`Link::Connected`] after it has caught up.
//! - **An ended link** cannot be repaired by waiting. [`Link::Ended`] names the fix.
//!
//! A `Cluster` has one thread. Its methods block, unless their documentation states otherwise, and
//! must not be called from a thread of an asynchronous runtime.
#![deny(unsafe_code)]

mod address;
mod backoff;
mod cluster;
mod connection;
mod connector;
mod credentials;
mod error;
mod follower;
mod frame;
mod leases;
mod link_state;
mod members;
mod options;
mod publisher;
mod replica;
mod reservation;
mod snapshots;

pub use cluster::{Cluster, Durability};
pub use error::Error;
pub use members::Node;
pub use options::{NodeDetails, Options};
pub use replica::{Link, Outgoing, Replica};
pub use snapshots::{SnapshotReader, SnapshotSummary};
