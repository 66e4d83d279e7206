//! The counts of a run: events within the window, and sessions that began in it.

use std::ops::Range;
use std::time::Duration;

use super::histogram::Histogram;
use super::session::{End, Session, Work};

/// The state of the client when the server closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// The client was idle.
    Idle,
    /// The client had unanswered requests.
    Asked,
    /// The server had announced it in its last response.
    Announced,
    /// The server had announced it in a 503, which ends the session.
    Refused,
}

/// The length of a [`Slot`].
pub(crate) const SLOT: Duration = Duration::from_millis(250);
/// Further complaints are counted, not stored.
const MOST_ERRORS: usize = 5;

/// The counts of a quarter of a second of the run, inside the window or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    pub(crate) begun: u64,
    pub(crate) refused: u64,
    pub(crate) replies: u64,
    pub(crate) completed: u64,
    pub(crate) pages: Histogram,
}

/// Sessions of similar length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Class {
    /// The number of ended sessions, except those refused with their first page and including those
    /// never answered; and the number of completed sessions among them.
    pub(crate) ended: u64,
    pub(crate) completed: u64,
}

/// All counts.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) window: Range<Duration>,
    /// The longest session of each class, in pages; the last class has no limit.
    bounds: &'static [u64],
    pub(crate) begun: u64,
    /// How much later than planned visitors arrived: long if the load generator cannot keep up.
    pub(crate) lags: Histogram,
    /// Visitors who arrived while all sockets were taken.
    pub(crate) turned_away: u64,
    pub(crate) admitted: u64,
    /// By [`End`].
    pub(crate) ends: [u64; End::ALL.len()],
    /// Sessions still active at the end of the run.
    pub(crate) open: u64,
    pub(crate) classes: Vec<Class>,
    /// Answered within the window, by the end of the session.
    pub(crate) work: [Work; End::ALL.len()],
    pub(crate) open_work: Work,
    /// In seconds, of completed sessions.
    pub(crate) lifetimes: f64,
    pub(crate) completed_work: Work,
    /// Response times.
    pub(crate) pages: Histogram,
    pub(crate) files: Histogram,
    /// Response times and the times of visitors who gave up: without them, an overloaded server
    /// looks fast.
    pub(crate) page_waits: Histogram,
    pub(crate) file_waits: Histogram,
    pub(crate) bytes: u64,
    pub(crate) refusals: Histogram,
    pub(crate) with_retry_after: u64,
    pub(crate) retry_after: u64,
    /// Responses with a status of 400 or more, except refusals.
    pub(crate) wrong: u64,
    /// By [`Close`].
    pub(crate) closed: [u64; 4],
    /// Finished TLS handshakes: full ones, and those that resumed a session.
    pub(crate) handshakes: [u64; 2],
    pub(crate) slots: Vec<Slot>,
    /// The first few errors.
    pub(crate) errors: Vec<String>,
}

impl Tally {
    pub(crate) fn new(window: Range<Duration>, bounds: &'static [u64]) -> Self {
        Self {
            window,
            bounds,
            begun: 0,
            lags: Histogram::default(),
            turned_away: 0,
            admitted: 0,
            ends: [0; End::ALL.len()],
            open: 0,
            classes: vec![Class::default(); bounds.len() + 1],
            work: [Work::default(); End::ALL.len()],
            open_work: Work::default(),
            lifetimes: 0.0,
            completed_work: Work::default(),
            pages: Histogram::default(),
            files: Histogram::default(),
            page_waits: Histogram::default(),
            file_waits: Histogram::default(),
            bytes: 0,
            refusals: Histogram::default(),
            with_retry_after: 0,
            retry_after: 0,
            wrong: 0,
            closed: [0; 4],
            handshakes: [0; 2],
            slots: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Counts how much later than planned a visitor arrives.
    pub(super) fn on_arrival(&mut self, now: Duration, lag: Duration) {
        if self.window.contains(&now) {
            self.lags.add(lag);
        }
    }

    /// Counts an arrival; `has_socket` is false if all sockets are taken.
    pub(crate) fn on_begun(&mut self, now: Duration, has_socket: bool) {
        self.slot(now).begun += 1;
        if self.window.contains(&now) {
            self.begun += u64::from(has_socket);
            self.turned_away += u64::from(!has_socket);
        }
    }

    /// Counts a complete response; returns whether it is in the window.
    pub(super) fn on_reply(
        &mut self,
        now: Duration,
        took: Duration,
        is_page: bool,
        bytes: u64,
    ) -> bool {
        let slot = self.slot(now);
        slot.replies += 1;
        if is_page {
            slot.pages.add(took);
        }
        let counts = self.window.contains(&now);
        if counts {
            self.bytes += bytes;
            if is_page { &mut self.pages } else { &mut self.files }.add(took);
            if is_page { &mut self.page_waits } else { &mut self.file_waits }.add(took);
        }
        counts
    }

    /// Counts a request that timed out after `waited`.
    pub(super) fn on_late(&mut self, now: Duration, waited: Duration, is_page: bool) {
        if is_page {
            self.slot(now).pages.add(waited);
        }
        if self.window.contains(&now) {
            if is_page { &mut self.page_waits } else { &mut self.file_waits }.add(waited);
        }
    }

    pub(super) fn on_refusal(
        &mut self,
        now: Duration,
        took: Duration,
        is_first: bool,
        retry_after: Option<u64>,
    ) {
        self.slot(now).refused += 1;
        if self.window.contains(&now) && is_first {
            self.refusals.add(took);
            self.with_retry_after += u64::from(retry_after.is_some());
            self.retry_after += retry_after.unwrap_or(0);
        }
    }

    pub(super) fn on_closed(&mut self, now: Duration, close: Close) {
        if self.window.contains(&now) {
            self.closed[close as usize] += 1;
        }
    }

    pub(super) fn on_handshake(&mut self, now: Duration, is_resumed: bool) {
        if self.window.contains(&now) {
            self.handshakes[usize::from(is_resumed)] += 1;
        }
    }

    /// Counts a session that ended; without an end it was active at the end of the run.
    pub(super) fn on_ended(&mut self, now: Duration, session: &Session, end: Option<End>) {
        if end == Some(End::Completed) {
            self.slot(now).completed += 1;
        }
        let work = match end {
            Some(end) => &mut self.work[end as usize],
            None => &mut self.open_work,
        };
        work.pages += session.counted.pages;
        work.requests += session.counted.requests;
        if !self.window.contains(&session.begun) {
            return;
        }
        let is_admitted = end != Some(End::Refused);
        self.admitted += u64::from(is_admitted);
        let Some(end) = end else {
            self.open += 1;
            return;
        };
        self.ends[end as usize] += 1;
        let is_complete = end == End::Completed;
        if is_complete {
            self.lifetimes += now.saturating_sub(session.begun).as_secs_f64();
            self.completed_work.pages += session.answered.pages;
            self.completed_work.requests += session.answered.requests;
        }
        if is_admitted {
            let length = session.length();
            let place = self.bounds.iter().take_while(|bound| length > **bound).count();
            self.classes[place].ended += 1;
            self.classes[place].completed += u64::from(is_complete);
        }
    }

    /// Counts a response with an error status.
    pub(super) fn on_wrong(&mut self, now: Duration, complaint: &str) {
        self.wrong += u64::from(self.window.contains(&now));
        self.record_error(complaint);
    }

    /// Records an error.
    pub(super) fn record_error(&mut self, complaint: &str) {
        if self.errors.len() < MOST_ERRORS {
            self.errors.push(complaint.to_owned());
        }
    }

    fn slot(&mut self, now: Duration) -> &mut Slot {
        let place = (now.as_micros() / SLOT.as_micros()) as usize;
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, Slot::default);
        }
        &mut self.slots[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::script::Reader;
    use crate::surge::Visit;

    const SECOND: Duration = Duration::from_secs(1);

    fn session(begun: Duration, pages: u64, answered: u64) -> Session {
        let visit = Visit { off: 0.0, page: "/".into(), embedded: [].into(), is_pipelined: false };
        let script = Reader::new((0..pages).map(|_| visit.clone()).collect());
        let mut session = Session::new(Box::new(script), 10 * SECOND, begun);
        session.answered = Work { pages: answered, requests: answered };
        session.counted = session.answered;
        session
    }

    #[test]
    fn counts_admitted_sessions_that_began_in_the_window_by_class() {
        let mut tally = Tally::new(10 * SECOND..20 * SECOND, &[1, 5]);
        tally.on_ended(30 * SECOND, &session(12 * SECOND, 3, 3), Some(End::Completed));
        tally.on_ended(30 * SECOND, &session(12 * SECOND, 5, 2), Some(End::Late));
        tally.on_ended(30 * SECOND, &session(12 * SECOND, 6, 0), Some(End::Refused));
        tally.on_ended(30 * SECOND, &session(9 * SECOND, 3, 3), Some(End::Completed));
        tally.on_ended(30 * SECOND, &session(12 * SECOND, 9, 1), None);
        tally.on_ended(30 * SECOND, &session(12 * SECOND, 8, 0), Some(End::Late));
        let late = Class { ended: 1, completed: 0 };
        assert_eq!(tally.classes, [Class::default(), Class { ended: 2, completed: 1 }, late]);
        assert_eq!(tally.ends, [1, 1, 0, 2, 0, 0]);
        assert_eq!((tally.open, tally.admitted), (1, 4), "every session that was not refused");
        assert_eq!(tally.completed_work.pages, 3);
        assert_eq!(tally.work[End::Completed as usize].pages, 6, "all counted pages");
        assert_eq!(tally.open_work.pages, 1);
    }

    #[test]
    fn fills_slots_outside_the_window_too() {
        let mut tally = Tally::new(10 * SECOND..20 * SECOND, &[]);
        assert!(!tally.on_reply(SECOND, SLOT, true, 9));
        assert!(tally.on_reply(10 * SECOND, SLOT, false, 9));
        assert!(!tally.on_reply(20 * SECOND, SLOT, true, 9));
        let replies: Vec<u64> = [4, 40, 80].map(|at| tally.slots[at].replies).into();
        assert_eq!(replies, [1, 1, 1]);
        assert_eq!((tally.pages.count(), tally.files.count(), tally.bytes), (0, 1, 9));
    }
}
