//! Presence in channels that several nodes share: each node enters its own sessions into the shared
//! state, and all derive the same join and leave messages from it.

use std::sync::{Arc, Weak};

use bine_push::{Draft, Publish};

use super::engine::Engine;
use super::presence::{PresentSessions, event_message};
use crate::shared_state::{RosterChange, RosterChangeKind, RosterObserver, SharedState};

/// The beginning of the places of channels.
const PREFIX: &str = "channel:";

/// Publishes join and leave messages when the shared state changes.
pub(super) struct SharedPresence(pub(super) Weak<Engine>);

/// The place of a channel in the shared state.
pub(super) fn place(channel: &str) -> String {
    format!("{PREFIX}{channel}")
}

/// The sessions that are present on all nodes.
pub(super) fn present(state: &SharedState, channel: &str, most: usize) -> PresentSessions {
    let (count, first) = state.roster(&place(channel), most);
    PresentSessions { count, sessions: first.into_iter().map(|(session, _)| session).collect() }
}

impl RosterObserver for SharedPresence {
    fn prefix(&self) -> &'static str {
        PREFIX
    }

    fn follow(&self, sequence: u64, time: u64, changes: &[RosterChange]) {
        let Some(engine) = self.0.upgrade() else { return };
        let messages: Vec<Draft> = changes.iter().filter_map(message).collect();
        engine.derive(Publish { messages, ..Publish::default() }, time, sequence);
        engine.presence_tracker.notify();
    }
}

fn message(change: &RosterChange) -> Option<Draft> {
    let channel = change.place.strip_prefix(PREFIX)?;
    let event = match change.kind {
        RosterChangeKind::Added => "join",
        RosterChangeKind::Removed => "leave",
        RosterChangeKind::Replaced => return None,
    };
    let event_channel: Arc<str> = super::presence::event_channel(channel);
    Some(event_message(&event_channel, event, &change.key, change.count))
}
