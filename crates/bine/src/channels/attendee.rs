//! One who is present in channels where presence is counted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bine_log as log;
use bine_push::{ChannelName, Command, Durability, Refused, Retention, Settings, name_from_bits};

use super::access::{Denied, Visitor};
use super::clock::now;
use super::engine::{Engine, Error};
use super::presence::{SUFFIX, TOLD, message, publication};

/// One who is present in channels until this is dropped, and for a while longer.
pub(crate) struct Attendee {
    engine: Arc<Engine>,
    pub(crate) session: Arc<str>,
    /// The name was given here, and has to be told.
    pub(crate) is_new: bool,
    pub(super) channels: Box<[u64]>,
}

/// Begins to count those who follow a channel.
///
/// # Errors
///
/// The channel of comings and goings cannot be.
pub(super) fn count_presence(
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
    let given = ChannelName::Given(Arc::clone(&told));
    let create = Command::Create { name: given, settings, fork, first, is_closed };
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
    engine.attendance.begin(name.into(), told, linger);
    Ok(())
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
        if !attendance.is_used() {
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
        attendance.tell(|order| drop(engine.order(order)), come);
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
            attendance.stir();
            self.engine.stir();
        }
    }
}

fn random_name() -> Arc<str> {
    let mut bits = [0; 16];
    bine_store::disk::random(&mut bits);
    name_from_bits(u128::from_le_bytes(bits)).into()
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
