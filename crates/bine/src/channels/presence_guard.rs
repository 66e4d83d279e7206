//! The presence of one client in channels that track it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bine_log as log;
use bine_push::{
    Applied, ChannelName, Command, Durability, Refused, Retention, Settings, name_from_bits,
};

use super::access::{ChannelClient, Denied};
use super::clock::now;
use super::engine::{Engine, Error};
use super::presence::{MAX_EVENTS, event_channel, message, publication};

/// Keeps a session present in channels until it is dropped, and for the linger time after that.
pub(crate) struct PresenceGuard {
    engine: Arc<Engine>,
    pub(crate) session: Arc<str>,
    /// Whether the server chose the name, so the client must learn it.
    pub(crate) is_new: bool,
    pub(super) channels: Box<[u64]>,
}

/// Starts to track the presence of a channel's followers.
///
/// # Errors
///
/// The channel for join and leave events cannot be created.
pub(super) fn count_presence(
    engine: &Arc<Engine>,
    name: &str,
    linger: Duration,
) -> Result<(), Error> {
    let event_channel = event_channel(name);
    let settings = Settings {
        content_type: Some("application/json".into()),
        retention: Retention { messages: MAX_EVENTS as u64, ..Retention::default() },
        durability: Durability::Memory,
        ..Settings::default()
    };
    let (fork, first, is_closed) = (None, Vec::new(), false);
    let given = ChannelName::Given(Arc::clone(&event_channel));
    let create = Command::Create { name: given, settings, fork, first, is_closed };
    // A restart ends every presence.
    let begins = message(&event_channel, "begin", "{\"count\":0}".to_owned());
    for command in [create, publication(vec![begins])] {
        use Refused::{Closed, Conflict, Gone};
        match engine.execute(command).wait() {
            // An existing channel of this name stays as it is and does not prevent the start.
            Err(Error::Refused(refused @ (Closed { .. } | Conflict(_) | Gone(_)))) => {
                log::warn(format_args!(
                    "comings and goings in `{name}` may not be told: {refused}; whatever else is called `{event_channel}` must be removed first"
                ));
            }
            // Other nodes may have clients that are present.
            Ok(Applied::Existed { .. }) if engine.presence_tracker.state().is_some() => break,
            done => drop(done?),
        }
    }
    let linger = u64::try_from(linger.as_millis()).unwrap_or(u64::MAX);
    engine.presence_tracker.track(name.into(), event_channel, linger);
    Ok(())
}

impl PresenceGuard {
    /// Makes a session present in those of `channels` that track presence; `None` if there is no
    /// such channel. Without a `name` the session gets a random one. `client` makes the request, or
    /// `None` for the program's own pages.
    ///
    /// A client that exceeds a quota follows the channels without being listed.
    pub(super) fn of(
        engine: &Arc<Engine>,
        channels: &[Box<str>],
        name: Option<&str>,
        client: Option<&ChannelClient<'_>>,
    ) -> Option<Arc<Self>> {
        let presence_tracker = &engine.presence_tracker;
        if !presence_tracker.is_used() {
            return None;
        }
        let mut table = presence_tracker.table();
        let numbers: Vec<_> = table.numbers(channels).collect();
        if numbers.is_empty() {
            return None;
        }
        let session = name.map_or_else(random_name, Arc::from);
        let (mut held, mut joins) = (Vec::with_capacity(numbers.len()), Vec::new());
        let address_quota = client.and_then(ChannelClient::address_quota);
        let is_join = |number: &u64| {
            !table.presence.is_present(*number, &session) && table.has_room(*number, address_quota)
        };
        let joining_client = client.filter(|_| numbers.iter().any(is_join));
        let rejected =
            joining_client.and_then(|client| client.charge_join().err()).map(Denied::reason);
        for number in numbers {
            let is_here = table.presence.is_present(number, &session);
            let holds = match &rejected {
                Some(reason) if !is_here => Err(reason.clone()),
                _ => table.hold(number, &session, address_quota.filter(|_| !is_here)),
            };
            match holds {
                Ok(change) => {
                    held.push(number);
                    if let Some(change) = change {
                        presence_tracker.note(&table, &change, &mut joins);
                    }
                }
                Err(reason) => table.warn(&reason),
            }
        }
        // Published under the lock, so that a later leave event has a later place in the channel.
        presence_tracker.publish(|command| drop(engine.execute(command)), joins);
        let (engine, is_new) = (Arc::clone(engine), name.is_none());
        Some(Arc::new(Self { engine, session, is_new, channels: held.into() }))
    }
}

impl Drop for PresenceGuard {
    fn drop(&mut self) {
        let presence_tracker = &self.engine.presence_tracker;
        let (mut table, now) = (presence_tracker.table(), now());
        let mut is_earlier = false;
        for number in &self.channels {
            let until = now.saturating_add(table.channels[*number as usize].linger);
            table.presence.release(*number, &self.session, until);
            is_earlier |= until < table.next_check;
            table.next_check = table.next_check.min(until);
        }
        drop(table);
        if is_earlier {
            presence_tracker.request_check();
            self.engine.request_expiry();
        }
    }
}

fn random_name() -> Arc<str> {
    let mut bits = [0; 16];
    bine_store::disk::random(&mut bits);
    name_from_bits(u128::from_le_bytes(bits)).into()
}

/// Two sessions are distinct even if they follow the same channels.
impl PartialEq for PresenceGuard {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for PresenceGuard {}

impl fmt::Debug for PresenceGuard {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "PresenceGuard({:?})", self.session)
    }
}
