//! A history: the requests of the clients of a cluster, and their results.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The operations of some clients on keys and channels of their own, and the states at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The number from which all decisions of the clients follow.
    pub(super) seed: u64,
    /// In any order.
    pub(super) operations: Vec<Operation>,
    pub(super) logs: Vec<Log>,
    /// The state of each node, after all operations have ended and all faults are healed.
    pub(super) finals: Vec<FinalState>,
    /// Whether reads see each change that was acknowledged before they began, as on one machine.
    pub(super) has_strict_reads: bool,
    /// Whether acknowledgments of changes have positions, as in a cluster.
    pub(super) has_positions: bool,
}

/// One request of a client. The times are nanoseconds since the start of the run, by one clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Operation {
    /// Unique in the run.
    pub(super) id: String,
    pub(super) client: usize,
    pub(super) node: usize,
    pub(super) begun: u64,
    pub(super) ended: u64,
    pub(super) work: Work,
    pub(super) outcome: Outcome,
    /// The keys that a change writes.
    pub(super) written: Vec<String>,
    /// The states that an acknowledged change or read has found.
    pub(super) seen: Vec<Seen>,
    /// The sequence of the state that a read has found.
    pub(super) sequence: Option<u64>,
    /// The position in the acknowledgment of a change.
    pub(super) position: Option<u64>,
    /// The position that the request carried: its client had seen it before.
    pub(super) token: Option<u64>,
    /// Whether the node has marked its response as stale.
    pub(super) is_stale: bool,
    /// The channel of a publication.
    pub(super) channel: String,
    /// The cursor in the acknowledgment of a publication.
    pub(super) cursor: Option<String>,
    /// The status and the message of the response, or the error of the connection.
    pub(super) answer: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Work {
    /// A transaction that reads and writes.
    #[default]
    Change,
    /// A snapshot of several keys.
    Read,
    Publish,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Outcome {
    #[default]
    Acknowledged,
    /// It must have no effect.
    Refused,
    /// It may have its effect or not.
    Unknown,
}

/// The state of a key: the number of its changes, and the operation of the last one. Version 0 has
/// no writer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Seen {
    pub(super) key: String,
    pub(super) version: u32,
    pub(super) writer: String,
}

/// The messages of a channel that one subscriber has received, from the first one on.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// The view and the number of the subscriber.
    pub(super) name: String,
    pub(super) channel: String,
    pub(super) messages: Vec<Delivered>,
}

/// A message of a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Delivered {
    /// The operation that has published it.
    pub(super) id: String,
    /// Absent in a view without a cursor for each message.
    pub(super) cursor: Option<String>,
}

/// The state of one node.
#[derive(Clone, Debug, Default)]
pub(super) struct FinalState {
    pub(super) node: usize,
    pub(super) sequence: u64,
    /// Registers as they are; each entry of a list with its number as the version.
    pub(super) rows: Vec<Seen>,
    /// The messages of each channel, with their cursors.
    pub(super) channels: BTreeMap<String, Vec<Delivered>>,
}

/// The first letters of the key of a list.
pub(super) const LIST: &str = "list";

impl History {
    /// The history as JSON, one operation on each line, for a person who searches for an error.
    pub(super) fn write(&self) -> String {
        let mut operations: Vec<&Operation> = self.operations.iter().collect();
        operations.sort_by_key(|operation| operation.begun);
        let mut lines = vec![json!({ "seed": self.seed })];
        lines.extend(operations.into_iter().map(Operation::json));
        lines.extend(self.logs.iter().map(|log| {
            json!({
                "subscriber": log.name,
                "channel": log.channel,
                "messages": log.messages.iter().map(Delivered::json).collect::<Vec<_>>(),
            })
        }));
        lines.extend(self.finals.iter().map(FinalState::json));
        lines.into_iter().map(|line| line.to_string() + "\n").collect()
    }
}

impl Operation {
    fn json(&self) -> Value {
        let milliseconds = |time: u64| time as f64 / 1e6;
        json!({
            "id": self.id,
            "client": self.client,
            "node": self.node,
            "begun_ms": milliseconds(self.begun),
            "ended_ms": milliseconds(self.ended),
            "work": format!("{:?}", self.work),
            "outcome": format!("{:?}", self.outcome),
            "written": self.written,
            "seen": self.seen.iter().map(Seen::json).collect::<Vec<_>>(),
            "sequence": self.sequence,
            "position": self.position,
            "token": self.token,
            "stale": self.is_stale,
            "channel": self.channel,
            "cursor": self.cursor,
            "answer": self.answer,
        })
    }
}

impl Seen {
    fn json(&self) -> Value {
        json!([self.key, self.version, self.writer])
    }
}

impl Delivered {
    fn json(&self) -> Value {
        json!([self.cursor, self.id])
    }
}

impl FinalState {
    fn json(&self) -> Value {
        let messages = |all: &Vec<Delivered>| all.iter().map(Delivered::json).collect();
        let channels: serde_json::Map<String, Value> =
            self.channels.iter().map(|(name, all)| (name.clone(), messages(all))).collect();
        json!({
            "final": self.node,
            "sequence": self.sequence,
            "rows": self.rows.iter().map(Seen::json).collect::<Vec<_>>(),
            "channels": channels,
        })
    }
}
