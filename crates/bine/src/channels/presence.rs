//! Decides who is present in a channel: whoever follows it, and for a while longer, so that between two polls nobody goes.
//!
//! A program says in which channels it wants to know. Comings and goings are messages in a channel of their own, in the
//! order in which they happen. All of it is in memory: whoever is there after a restart comes anew.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bine_pipeline::log;
use bine_push::{
    Content, Draft, Durability, Name, Order, Presence, PresenceChange, Publish, Retention,
    Settings, name_of,
};

use super::engine::{Engine, now};

/// Who is present in a channel, as [`Channels::present`](super::Channels::present) tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Present {
    /// How many are.
    pub count: usize,
    /// Who they are, in the order of their names; at most so many as were asked for.
    pub sessions: Vec<Arc<str>>,
}

/// All who are present.
pub(super) struct Attendance {
    /// Whether any channel's followers are counted: most programs have none.
    counts: AtomicBool,
    hall: Mutex<Hall>,
    /// Somebody goes before the next look.
    is_stirred: AtomicBool,
}

struct Hall {
    /// By the numbers of `channels`.
    presence: Presence,
    channels: Vec<Counted>,
    /// When those are looked for who have gone.
    looks_at: u64,
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
    ) -> Result<(), super::Error> {
        let told: Arc<str> = format!("{name}{SUFFIX}").into();
        let settings = Settings {
            content_type: Some("application/json".into()),
            retention: Retention { messages: TOLD as u64, ..Retention::default() },
            durability: Durability::Memory,
            ..Settings::default()
        };
        let (fork, first, is_closed) = (None, Vec::new(), false);
        let given = Name::Given(Arc::clone(&told));
        engine.order(Order::Create { name: given, settings, fork, first, is_closed }).wait()?;
        // Whoever was present before a restart is not.
        let begins = message(&told, "begin", "{\"count\":0}".to_owned());
        engine.order(publication(vec![begins])).wait()?;
        let linger = u64::try_from(linger.as_millis()).unwrap_or(u64::MAX);
        self.hall().channels.push(Counted { name: name.into(), told, linger });
        self.counts.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether whoever follows these is counted.
    pub(super) fn counts(&self, channels: &[Box<str>]) -> bool {
        self.counts.load(Ordering::Acquire) && self.hall().numbers(channels).next().is_some()
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
    /// known, or by a name that nobody guesses.
    pub(super) fn of(
        engine: &Arc<Engine>,
        channels: &[Box<str>],
        name: Option<&str>,
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
        for number in numbers {
            match hall.presence.hold(number, &session) {
                Ok(change) => {
                    held.push(number);
                    come.extend(change.map(|change| hall.message(&change)));
                }
                // Whoever is too many follows all the same, and is not listed.
                Err(crowded) => log::warn(format_args!("presence in channels: {crowded}")),
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
        let (presence, channels, looks_at) = (Presence::new(MOST), Vec::new(), u64::MAX);
        let hall = Mutex::new(Hall { presence, channels, looks_at });
        Self { counts: AtomicBool::new(false), hall, is_stirred: AtomicBool::new(false) }
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
