//! Presence: the sessions that follow a channel. A session stays present for a linger time after
//! it leaves, so that it remains listed between two polls.
//!
//! A program chooses the channels. Join and leave events are messages in a channel of their own, in
//! the order in which they happen. All state is in memory: after a restart each session joins
//! again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bine_log as log;

use bine_push::{Command, Content, Draft, PresenceChange, PresenceSet, Publish};
use bine_server::AddressBlock;

use super::clock::now;
use crate::shared_state::{Roster, SharedState};
use crate::signal::Signal;

/// The sessions present in a channel, as [`Channels::present`](super::Channels::present) returns
/// them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresentSessions {
    /// The number of sessions.
    pub count: usize,
    /// The first names in alphabetical order, up to the requested number.
    pub sessions: Vec<Arc<str>>,
}

/// Tracks the present sessions of all channels.
pub(crate) struct PresenceTracker {
    /// Whether any channel tracks presence: most programs do not use it.
    is_active: AtomicBool,
    table: Mutex<PresenceTable>,
    /// Whether a session expires before the next scheduled check.
    needs_check: AtomicBool,
    /// Invalidates the pages that display present sessions.
    changed: Signal<()>,
    /// The state that nodes share, in a program.
    state: OnceLock<SharedState>,
}

pub(super) struct PresenceTable {
    /// Indexed by the positions in `channels`.
    pub(super) presence: PresenceSet,
    pub(super) channels: Vec<TrackedChannel>,
    /// The address block of each present session without a verified name.
    anonymous_sessions: HashMap<(u64, Arc<str>), AddressBlock>,
    /// The number of such sessions by channel and address block.
    anonymous_counts: HashMap<(u64, AddressBlock), u32>,
    /// When the next check for expired sessions is due.
    pub(super) next_check: u64,
    /// When the log last got a warning about unlisted sessions.
    warned_at: u64,
}

/// A channel that tracks presence.
pub(super) struct TrackedChannel {
    name: Arc<str>,
    /// The channel for join and leave events.
    event_channel: Arc<str>,
    /// Milliseconds for which a session stays present after it has left.
    pub(super) linger: u64,
}

/// The maximum number of present sessions in all channels together.
const MAX_SESSIONS: usize = 1 << 20;
/// The maximum number of expired sessions in one publication, and of retained events.
pub(super) const MAX_EVENTS: usize = 1000;
/// Milliseconds between two warnings about unlisted sessions.
const WARNING_INTERVAL: u64 = 60_000;
/// The name of the channel for events: the channel's name with this suffix.
const SUFFIX: &str = "/presence";

/// The beginning of the places of channels in the state that nodes share.
pub(super) const SHARED_PREFIX: &str = "channel:";

/// The place of a channel in the state that nodes share.
fn shared_place(channel: &str) -> String {
    format!("{SHARED_PREFIX}{channel}")
}

/// The channel for join and leave events of a channel.
pub(super) fn event_channel(name: &str) -> Arc<str> {
    format!("{name}{SUFFIX}").into()
}

impl PresenceTracker {
    /// Whether any channel tracks presence.
    pub(super) fn is_used(&self) -> bool {
        self.is_active.load(Ordering::Acquire)
    }

    /// Starts to track a channel, with a linger time in milliseconds and a channel for its events.
    pub(super) fn track(&self, name: Arc<str>, event_channel: Arc<str>, linger: u64) {
        self.table().channels.push(TrackedChannel { name, event_channel, linger });
        self.is_active.store(true, Ordering::Release);
    }

    /// Notes that a session expires before the next scheduled check.
    pub(super) fn request_check(&self) {
        self.needs_check.store(true, Ordering::Release);
    }

    /// Shares the presence with other nodes by this state, if the program has several.
    pub(super) fn share(&self, state: SharedState) {
        // Called once.
        let _ = self.state.set(state);
    }

    /// The state that several nodes share; `None` on one machine.
    pub(super) fn state(&self) -> Option<&SharedState> {
        self.state.get().filter(|state| state.is_shared())
    }

    /// Renders the pages again that display present sessions.
    pub(super) fn notify(&self) {
        self.changed.notify();
    }

    /// Reports a change to the other nodes, or adds its event to `messages` on one machine.
    pub(super) fn note(
        &self,
        table: &PresenceTable,
        change: &PresenceChange,
        messages: &mut Vec<Draft>,
    ) {
        let Some(state) = self.state() else {
            messages.push(table.message(change));
            return;
        };
        let place = shared_place(&table.channels[change.channel as usize].name);
        if change.is_present {
            state.enter(&place, &change.session, "");
        } else {
            state.leave(&place, &change.session);
        }
    }

    /// Publishes presence events.
    pub(super) fn publish(&self, publish: impl FnOnce(Command), messages: Vec<Draft>) {
        if !messages.is_empty() {
            // The store already logs a failing disk, and clients can query the present sessions.
            publish(publication(messages));
            self.changed.notify();
        }
    }

    /// Whether any given channel tracks presence.
    pub(super) fn tracks_any(&self, channels: &[Box<str>]) -> bool {
        self.is_active.load(Ordering::Acquire) && self.table().numbers(channels).next().is_some()
    }

    /// Whether a channel carries join and leave events, where only the server may publish.
    pub(super) fn is_event_channel(&self, channel: &str) -> bool {
        self.is_active.load(Ordering::Acquire)
            && self.table().channels.iter().any(|counted| *counted.event_channel == *channel)
    }

    /// Publishes leave events for expired sessions. Returns when the next check is due, in
    /// milliseconds since 1970.
    pub(super) fn expire(&self, publish: impl FnOnce(Command)) -> Option<u64> {
        if !self.is_active.load(Ordering::Acquire) {
            return None;
        }
        let (mut table, mut gone) = (self.table(), Vec::new());
        let now = now();
        for _ in 0..MAX_EVENTS {
            let Some(change) = table.presence.expire(now) else { break };
            table.leave(&change);
            self.note(&table, &change, &mut gone);
        }
        // Published under the lock, so that a later join event has a later place in the channel.
        self.publish(publish, gone);
        let next = table.presence.next_due();
        table.next_check = next.unwrap_or(u64::MAX);
        next
    }

    /// Whether a check is due at once. The engine asks before it waits.
    pub(super) fn take_check(&self) -> bool {
        self.needs_check.swap(false, Ordering::AcqRel)
    }

    /// Returns the sessions present in a channel. `None`: the channel does not track presence.
    pub(super) fn present(&self, name: &str, most: usize) -> Option<PresentSessions> {
        self.changed.with(|()| {});
        let table = self.table();
        let number = table.channels.iter().position(|counted| *counted.name == *name)? as u64;
        if let Some(state) = self.state() {
            let Roster { count, first } = state.roster(&shared_place(name), most);
            let sessions = first.into_iter().map(|(session, _)| session).collect();
            return Some(PresentSessions { count, sessions });
        }
        let sessions = table.presence.sessions(number, "").take(most).map(Arc::clone).collect();
        Some(PresentSessions { count: table.presence.count(number), sessions })
    }

    pub(super) fn table(&self) -> MutexGuard<'_, PresenceTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PresenceTable {
    /// Returns the numbers of the given channels that track presence.
    pub(super) fn numbers(&self, channels: &[Box<str>]) -> impl Iterator<Item = u64> {
        (0..).zip(&self.channels).filter_map(|(number, counted)| {
            channels.iter().any(|channel| **channel == *counted.name).then_some(number)
        })
    }

    /// Makes a session present. A new session from an address block needs room in its quota.
    ///
    /// # Errors
    ///
    /// The reason why the session is not listed.
    pub(super) fn hold(
        &mut self,
        number: u64,
        session: &Arc<str>,
        address_quota: Option<(AddressBlock, u32)>,
    ) -> Result<Option<PresenceChange>, String> {
        if let Some((_, most)) = address_quota.filter(|_| !self.has_room(number, address_quota)) {
            return Err(format!(
                "{most} are present already from one address, which is what ClientLimits::holds_per_address allows"
            ));
        }
        let change = self.presence.hold(number, session).map_err(|crowded| crowded.to_string())?;
        if let Some((block, _)) = address_quota {
            self.anonymous_sessions.insert((number, Arc::clone(session)), block);
            *self.anonymous_counts.entry((number, block)).or_default() += 1;
        }
        Ok(change)
    }

    /// Whether the quota of an address block has room for one more session.
    pub(super) fn has_room(&self, number: u64, address_quota: Option<(AddressBlock, u32)>) -> bool {
        let there =
            address_quota.and_then(|(block, _)| self.anonymous_counts.get(&(number, block)));
        address_quota.is_none_or(|(_, most)| there.copied().unwrap_or_default() < most)
    }

    /// Removes an expired session from its address block's quota.
    fn leave(&mut self, change: &PresenceChange) {
        let guest = (change.channel, Arc::clone(&change.session));
        let Some(block) = self.anonymous_sessions.remove(&guest) else { return };
        let address_quota = (change.channel, block);
        match self.anonymous_counts.get_mut(&address_quota) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.anonymous_counts.remove(&address_quota)),
        }
    }

    /// Logs why a session is not listed, at a limited rate: a flood of sessions must not fill the
    /// log.
    pub(super) fn warn(&mut self, reason: &str) {
        let now = now();
        if now.saturating_sub(self.warned_at) >= WARNING_INTERVAL {
            self.warned_at = now;
            log::warn(format_args!("not all who follow are listed as present: {reason}"));
        }
    }

    /// Builds a presence event.
    pub(super) fn message(&self, change: &PresenceChange) -> Draft {
        let event = if change.is_present { "join" } else { "leave" };
        let count = self.presence.count(change.channel);
        let event_channel = &self.channels[change.channel as usize].event_channel;
        event_message(event_channel, event, &change.session, count)
    }
}

/// Builds the message of a session that has joined or left.
pub(super) fn event_message(
    event_channel: &Arc<str>,
    event: &str,
    session: &str,
    count: usize,
) -> Draft {
    let session = serde_json::Value::from(session);
    message(event_channel, event, format!("{{\"session\":{session},\"count\":{count}}}"))
}

pub(super) fn publication(messages: Vec<Draft>) -> Command {
    Command::Publish(Publish { messages, ..Publish::default() })
}

pub(super) fn message(channel: &Arc<str>, event: &str, body: String) -> Draft {
    let content =
        Content { event: Some(event.into()), body: body.into_bytes().into(), ..Content::default() };
    Draft { channels: vec![Arc::clone(channel)], content }
}

impl Default for PresenceTracker {
    fn default() -> Self {
        let table = Mutex::new(PresenceTable {
            presence: PresenceSet::new(MAX_SESSIONS),
            channels: Vec::new(),
            anonymous_sessions: HashMap::new(),
            anonymous_counts: HashMap::new(),
            next_check: u64::MAX,
            warned_at: 0,
        });
        let (is_active, needs_check) = (AtomicBool::new(false), AtomicBool::new(false));
        let (changed, state) = (Signal::default(), OnceLock::new());
        Self { is_active, table, needs_check, changed, state }
    }
}

#[cfg(test)]
mod tests;
