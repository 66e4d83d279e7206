//! Presence in channels that several nodes share: each node enters its own sessions into the shared
//! state, and all derive the same join and leave messages from it.

use std::sync::Weak;

use bine_push::{Draft, Publish};

use super::engine::Engine;
use super::presence::{SHARED_PREFIX, event_channel, event_message};
use crate::shared_state::{RosterChange, RosterChangeKind, RosterObserver};

/// Publishes join and leave messages when the shared state changes.
pub(super) struct SharedPresence(pub(super) Weak<Engine>);

impl RosterObserver for SharedPresence {
    fn prefix(&self) -> &'static str {
        SHARED_PREFIX
    }

    fn follow(&self, sequence: u64, time: u64, changes: &[RosterChange]) {
        let Some(engine) = self.0.upgrade() else { return };
        let messages: Vec<Draft> = changes.iter().filter_map(message).collect();
        engine.derive(Publish { messages, ..Publish::default() }, time, sequence);
        engine.presence_tracker.notify();
    }
}

fn message(change: &RosterChange) -> Option<Draft> {
    let channel = change.place.strip_prefix(SHARED_PREFIX)?;
    let event = match change.kind {
        RosterChangeKind::Added => "join",
        RosterChangeKind::Removed => "leave",
        RosterChangeKind::Replaced => return None,
    };
    Some(event_message(&event_channel(channel), event, &change.key, change.count))
}
