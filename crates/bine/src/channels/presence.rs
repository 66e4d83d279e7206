//! Decides who is present in a channel: whoever follows it, and for a while longer, so that between two polls nobody goes.
//!
//! A program says in which channels it wants to know. Comings and goings are messages in a channel of their own, in the
//! order in which they happen. All of it is in memory: whoever is there after a restart comes anew.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_log as log;
use bine_push::{Command, Content, Draft, Presence, PresenceChange, Publish};
use bine_server::AddressBlock;

use super::clock::now;
use crate::signal::Signal;

/// Who is present in a channel, as [`Channels::present`](super::Channels::present) tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Present {
    /// How many are.
    pub count: usize,
    /// Who they are, in the order of their names; at most so many as were asked for.
    pub sessions: Vec<Arc<str>>,
}

/// All who are present.
pub(crate) struct Attendance {
    /// Whether any channel's followers are counted: most programs have none.
    counts: AtomicBool,
    hall: Mutex<Hall>,
    /// Somebody goes before the next look.
    is_stirred: AtomicBool,
    /// Moves the pages that show who is present.
    changed: Signal<()>,
}

pub(super) struct Hall {
    /// By the numbers of `channels`.
    pub(super) presence: Presence,
    pub(super) channels: Vec<Counted>,
    /// Who may call themselves anything, as long as they are present, and where they came from.
    guests: HashMap<(u64, Arc<str>), AddressBlock>,
    /// How many of them there are in a channel from one address.
    crowds: HashMap<(u64, AddressBlock), u32>,
    /// When those are looked for who have gone.
    pub(super) looks_at: u64,
    /// When the log was last told that somebody is not listed.
    told_at: u64,
}

/// A channel whose followers are counted.
pub(super) struct Counted {
    name: Arc<str>,
    /// Where comings and goings are told.
    told: Arc<str>,
    /// Milliseconds for which somebody who has left is taken for present.
    pub(super) linger: u64,
}

/// Who are present at once, in all channels.
const MOST: usize = 1 << 20;
/// Comings and goings that are told at once, and that stay.
pub(super) const TOLD: usize = 1000;
/// The log is told once in so many milliseconds that not all are listed.
const PAUSE: u64 = 60_000;
/// The channel of comings and goings is called as the channel itself, and this.
pub(super) const SUFFIX: &str = "/presence";

impl Attendance {
    /// Whether any channel's followers are counted.
    pub(super) fn is_used(&self) -> bool {
        self.counts.load(Ordering::Acquire)
    }

    /// Counts from now on who follows a channel, for `linger` milliseconds longer. Comings and goings are told in `told`.
    pub(super) fn begin(&self, name: Arc<str>, told: Arc<str>, linger: u64) {
        self.hall().channels.push(Counted { name, told, linger });
        self.counts.store(true, Ordering::Release);
    }

    /// Somebody goes before the next look.
    pub(super) fn stir(&self) {
        self.is_stirred.store(true, Ordering::Release);
    }

    /// Tells of comings and goings.
    pub(super) fn tell(&self, publish: impl FnOnce(Command), messages: Vec<Draft>) {
        if !messages.is_empty() {
            // A disk that is full or fails has been told of by others, and who is here can be asked for.
            publish(publication(messages));
            self.changed.notify();
        }
    }

    /// Whether whoever follows these is counted.
    pub(super) fn counts(&self, channels: &[Box<str>]) -> bool {
        self.counts.load(Ordering::Acquire) && self.hall().numbers(channels).next().is_some()
    }

    /// Whether comings and goings are told in a channel, where nobody else has anything to say.
    pub(super) fn tells_in(&self, channel: &str) -> bool {
        self.counts.load(Ordering::Acquire)
            && self.hall().channels.iter().any(|counted| *counted.told == *channel)
    }

    /// Tells who have gone, and when to look again, in milliseconds since 1970.
    pub(super) fn look(&self, publish: impl FnOnce(Command)) -> Option<u64> {
        if !self.counts.load(Ordering::Acquire) {
            return None;
        }
        let (mut hall, mut gone) = (self.hall(), Vec::new());
        let now = now();
        while gone.len() < TOLD
            && let Some(change) = hall.presence.expire(now)
        {
            hall.leave(&change);
            gone.push(hall.message(&change));
        }
        // Under the lock: who comes back is told behind it.
        self.tell(publish, gone);
        let next = hall.presence.next_due();
        hall.looks_at = next.unwrap_or(u64::MAX);
        next
    }

    /// Whether to look again at once. Asked for where the engine is about to wait.
    pub(super) fn was_stirred(&self) -> bool {
        self.is_stirred.swap(false, Ordering::AcqRel)
    }

    /// Who is present. `None`: nobody counts there.
    pub(super) fn present(&self, name: &str, most: usize) -> Option<Present> {
        self.changed.with(|()| {});
        let hall = self.hall();
        let number = hall.channels.iter().position(|counted| *counted.name == *name)? as u64;
        let sessions = hall.presence.sessions(number, "").take(most).map(Arc::clone).collect();
        Some(Present { count: hall.presence.count(number), sessions })
    }

    pub(super) fn hall(&self) -> MutexGuard<'_, Hall> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hall {
    /// Of those of these channels that are counted.
    pub(super) fn numbers(&self, channels: &[Box<str>]) -> impl Iterator<Item = u64> {
        (0..).zip(&self.channels).filter_map(|(number, counted)| {
            channels.iter().any(|channel| **channel == *counted.name).then_some(number)
        })
    }

    /// Has somebody be here; who comes anew from a crowd must find room in it.
    ///
    /// # Errors
    ///
    /// There is none, for this reason.
    pub(super) fn hold(
        &mut self,
        number: u64,
        session: &Arc<str>,
        crowd: Option<(AddressBlock, u32)>,
    ) -> Result<Option<PresenceChange>, String> {
        if let Some((_, most)) = crowd.filter(|_| !self.has_room(number, crowd)) {
            return Err(format!(
                "{most} are present already from one address, which is what Caps::holds_per_address allows"
            ));
        }
        let change = self.presence.hold(number, session).map_err(|crowded| crowded.to_string())?;
        if let Some((block, _)) = crowd {
            self.guests.insert((number, Arc::clone(session)), block);
            *self.crowds.entry((number, block)).or_default() += 1;
        }
        Ok(change)
    }

    /// Whether one more of a crowd may be here.
    pub(super) fn has_room(&self, number: u64, crowd: Option<(AddressBlock, u32)>) -> bool {
        let there = crowd.and_then(|(block, _)| self.crowds.get(&(number, block)));
        crowd.is_none_or(|(_, most)| there.copied().unwrap_or_default() < most)
    }

    /// Somebody has gone, and leaves room.
    fn leave(&mut self, change: &PresenceChange) {
        let guest = (change.channel, Arc::clone(&change.session));
        let Some(block) = self.guests.remove(&guest) else { return };
        let crowd = (change.channel, block);
        match self.crowds.get_mut(&crowd) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.crowds.remove(&crowd)),
        }
    }

    /// Tells the log why somebody is not listed, now and then: whoever wants to be many would fill it.
    pub(super) fn complain(&mut self, reason: &str) {
        let now = now();
        if now.saturating_sub(self.told_at) >= PAUSE {
            self.told_at = now;
            log::warn(format_args!("not all who follow are listed as present: {reason}"));
        }
    }

    /// What is told of a coming or a going.
    pub(super) fn message(&self, change: &PresenceChange) -> Draft {
        let event = if change.is_present { "join" } else { "leave" };
        let count = self.presence.count(change.channel);
        let session = serde_json::Value::from(&*change.session);
        let body = format!("{{\"session\":{session},\"count\":{count}}}");
        message(&self.channels[change.channel as usize].told, event, body)
    }
}

pub(super) fn publication(messages: Vec<Draft>) -> Command {
    Command::Publish(Publish { messages, ..Publish::default() })
}

pub(super) fn message(channel: &Arc<str>, event: &str, body: String) -> Draft {
    let content =
        Content { event: Some(event.into()), body: body.into_bytes().into(), ..Content::default() };
    Draft { channels: vec![Arc::clone(channel)], content }
}

impl Default for Attendance {
    fn default() -> Self {
        let hall = Mutex::new(Hall {
            presence: Presence::new(MOST),
            channels: Vec::new(),
            guests: HashMap::new(),
            crowds: HashMap::new(),
            looks_at: u64::MAX,
            told_at: 0,
        });
        let (counts, is_stirred) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { counts, hall, is_stirred, changed: Signal::default() }
    }
}

#[cfg(test)]
mod tests;
