//! Decides who is present in a channel: whoever follows it, and for a while longer, so that between two polls nobody goes.
//!
//! A program says in which channels it wants to know. Comings and goings are messages in a channel of their own, in the
//! order in which they happen. All of it is in memory: whoever is there after a restart comes anew.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bine_log as log;
use bine_pipeline::AddressBlock;
use bine_push::{
    Content, Draft, Durability, Name, Order, Presence, PresenceChange, Publish, Refused, Retention,
    Settings, name_of,
};

use super::Error;
use super::access::{Denied, Visitor};
use super::engine::{Engine, now};
use crate::live::Signal;

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

struct Hall {
    /// By the numbers of `channels`.
    presence: Presence,
    channels: Vec<Counted>,
    /// Who may call themselves anything, as long as they are present, and where they came from.
    guests: HashMap<(u64, Arc<str>), AddressBlock>,
    /// How many of them there are in a channel from one address.
    crowds: HashMap<(u64, AddressBlock), u32>,
    /// When those are looked for who have gone.
    looks_at: u64,
    /// When the log was last told that somebody is not listed.
    told_at: u64,
}

/// A channel whose followers are counted.
struct Counted {
    name: Arc<str>,
    /// Where comings and goings are told.
    told: Arc<str>,
    /// Milliseconds for which somebody who has left is taken for present.
    linger: u64,
}

/// One who is present in channels until this is dropped, and for a while longer.
pub(crate) struct Attendee {
    engine: Arc<Engine>,
    pub(crate) session: Arc<str>,
    /// The name was given here, and has to be told.
    pub(crate) is_new: bool,
    channels: Box<[u64]>,
}

/// Who are present at once, in all channels.
const MOST: usize = 1 << 20;
/// Comings and goings that are told at once, and that stay.
const TOLD: usize = 1000;
/// The log is told once in so many milliseconds that not all are listed.
const PAUSE: u64 = 60_000;
/// The channel of comings and goings is called as the channel itself, and this.
const SUFFIX: &str = "/presence";

impl Attendance {
    /// Begins to count those who follow a channel.
    ///
    /// # Errors
    ///
    /// The channel of comings and goings cannot be.
    pub(super) fn count(
        &self,
        engine: &Arc<Engine>,
        name: &str,
        linger: Duration,
    ) -> Result<(), Error> {
        let told: Arc<str> = format!("{name}{SUFFIX}").into();
        let settings = Settings {
            content_type: Some("application/json".into()),
            retention: Retention { messages: TOLD as u64, ..Retention::default() },
            durability: Durability::Memory,
            ..Settings::default()
        };
        let (fork, first, is_closed) = (None, Vec::new(), false);
        let given = Name::Given(Arc::clone(&told));
        let create = Order::Create { name: given, settings, fork, first, is_closed };
        // Whoever was present before a restart is not.
        let begins = message(&told, "begin", "{\"count\":0}".to_owned());
        for order in [create, publication(vec![begins])] {
            use Refused::{Closed, Conflict, Gone};
            match engine.order(order).wait() {
                // What was called so before anybody was counted stays as it is, and ends no start.
                Err(Error::Refused(refused @ (Closed { .. } | Conflict(_) | Gone(_)))) => {
                    log::warn(format_args!(
                        "comings and goings in `{name}` may not be told: {refused}; whatever else is called `{told}` must be removed first"
                    ));
                }
                done => drop(done?),
            }
        }
        let linger = u64::try_from(linger.as_millis()).unwrap_or(u64::MAX);
        self.hall().channels.push(Counted { name: name.into(), told, linger });
        self.counts.store(true, Ordering::Release);
        Ok(())
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
    pub(super) fn look(&self, engine: &Arc<Engine>) -> Option<u64> {
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
        tell(engine, gone);
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

    fn hall(&self) -> MutexGuard<'_, Hall> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attendee {
    /// Has one be present in those of these channels where it is counted. `None`: in none of them. `name`: as they are
    /// known, or by a name that nobody guesses. `visitor`: whose doing it is, if it is not the program's own.
    ///
    /// Whoever is too many, or comes and goes too often, follows all the same and is not listed.
    pub(super) fn of(
        engine: &Arc<Engine>,
        channels: &[Box<str>],
        name: Option<&str>,
        visitor: Option<&Visitor<'_>>,
    ) -> Option<Arc<Self>> {
        let attendance = &engine.attendance;
        if !attendance.counts.load(Ordering::Acquire) {
            return None;
        }
        let mut hall = attendance.hall();
        let numbers: Vec<_> = hall.numbers(channels).collect();
        if numbers.is_empty() {
            return None;
        }
        let session = name.map_or_else(random_name, Arc::from);
        let (mut held, mut come) = (Vec::with_capacity(numbers.len()), Vec::new());
        let crowd = visitor.and_then(Visitor::crowd);
        let comes = |number: &u64| {
            !hall.presence.is_present(*number, &session) && hall.has_room(*number, crowd)
        };
        let comer = visitor.filter(|_| numbers.iter().any(comes));
        let unpaid = comer.and_then(|visitor| visitor.come().err()).map(Denied::reason);
        for number in numbers {
            let is_here = hall.presence.is_present(number, &session);
            let holds = match &unpaid {
                Some(reason) if !is_here => Err(reason.clone()),
                _ => hall.hold(number, &session, crowd.filter(|_| !is_here)),
            };
            match holds {
                Ok(change) => {
                    held.push(number);
                    come.extend(change.map(|change| hall.message(&change)));
                }
                Err(reason) => hall.complain(&reason),
            }
        }
        // Under the lock: who goes is told behind it.
        tell(engine, come);
        let (engine, is_new) = (Arc::clone(engine), name.is_none());
        Some(Arc::new(Self { engine, session, is_new, channels: held.into() }))
    }
}

impl Drop for Attendee {
    fn drop(&mut self) {
        let attendance = &self.engine.attendance;
        let (mut hall, now) = (attendance.hall(), now());
        let mut is_earlier = false;
        for number in &self.channels {
            let until = now.saturating_add(hall.channels[*number as usize].linger);
            hall.presence.release(*number, &self.session, until);
            is_earlier |= until < hall.looks_at;
            hall.looks_at = hall.looks_at.min(until);
        }
        drop(hall);
        if is_earlier {
            attendance.is_stirred.store(true, Ordering::Release);
            self.engine.stir();
        }
    }
}

impl Hall {
    /// Of those of these channels that are counted.
    fn numbers(&self, channels: &[Box<str>]) -> impl Iterator<Item = u64> {
        (0..).zip(&self.channels).filter_map(|(number, counted)| {
            channels.iter().any(|channel| **channel == *counted.name).then_some(number)
        })
    }

    /// Has somebody be here; who comes anew from a crowd must find room in it.
    ///
    /// # Errors
    ///
    /// There is none, for this reason.
    fn hold(
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
    fn has_room(&self, number: u64, crowd: Option<(AddressBlock, u32)>) -> bool {
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
    fn complain(&mut self, reason: &str) {
        let now = now();
        if now.saturating_sub(self.told_at) >= PAUSE {
            self.told_at = now;
            log::warn(format_args!("not all who follow are listed as present: {reason}"));
        }
    }

    /// What is told of a coming or a going.
    fn message(&self, change: &PresenceChange) -> Draft {
        let event = if change.is_present { "join" } else { "leave" };
        let count = self.presence.count(change.channel);
        let session = serde_json::Value::from(&*change.session);
        let body = format!("{{\"session\":{session},\"count\":{count}}}");
        message(&self.channels[change.channel as usize].told, event, body)
    }
}

fn tell(engine: &Arc<Engine>, messages: Vec<Draft>) {
    if !messages.is_empty() {
        // A disk that is full or fails has been told of by others, and who is here can be asked for.
        drop(engine.order(publication(messages)));
        engine.attendance.changed.notify();
    }
}

fn publication(messages: Vec<Draft>) -> Order {
    Order::Publish(Publish { messages, ..Publish::default() })
}

fn message(channel: &Arc<str>, event: &str, body: String) -> Draft {
    let content =
        Content { event: Some(event.into()), body: body.into_bytes().into(), ..Content::default() };
    Draft { channels: vec![Arc::clone(channel)], content }
}

fn random_name() -> Arc<str> {
    let mut bits = [0; 16];
    bine_store::disk::random(&mut bits);
    name_of(u128::from_le_bytes(bits)).into()
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

/// Two who follow the same are not one.
impl PartialEq for Attendee {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Attendee {}

impl fmt::Debug for Attendee {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Attendee({:?})", self.session)
    }
}

#[cfg(test)]
mod tests;
