//! The stream that several nodes share: its messages, those that this node has sent, and the rule by
//! which all nodes decide whether a transaction conflicts.

pub(crate) mod access;
pub(crate) mod history;
pub(crate) mod message;
pub(crate) mod origins;
pub(crate) mod outbox;
