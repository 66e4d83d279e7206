//! Sessions of visitors: who comes again, what is kept of them, and for how long.
//!
//! A session begins when a page first looks at it, and is then only a signed cookie; a row of the table `session` is made
//! when something is to be kept. Nothing depends on memory: the cookie, the key file and the table are all there is, but for
//! a minute behind each login.

mod badge;
mod caller;
mod derived_keys;
mod ended;
mod frame;
mod keys;
pub(crate) mod login;
mod name;
mod quota;
mod row;
mod saving;
mod seal;
mod session;
mod sweep;
pub(crate) mod ticket;
mod user;
mod visit;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bine_http::Head;
use bine_log as log;
use bine_server::{AddressBlock, Incoming, Peer, Who};

use badge::Badge;
use ended::Ended;
use keys::Keys;
use login::Hearer;
use quota::{Made, Most, Quota};
use row::Row;
use sweep::Sweep;

use crate::store::{Options, Store, Time};

#[doc(hidden)]
pub use badge::check_session;
pub use frame::{Frame, Keeping};
pub(crate) use login::Login;
pub use saving::Saving;
#[doc(hidden)]
pub use seal::check_sealed;
pub use session::{Open, Session};
pub use ticket::check_ticket;
pub use user::User;
pub(crate) use visit::Visit;

/// How long sessions last, and how many are kept: given to [`App::sessions`](crate::App::sessions).
///
/// ```
/// use std::time::Duration;
///
/// use bine::{App, Sessions};
///
/// const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// let app = App::new().sessions(Sessions::new().idle(7 * DAY).absolute(30 * DAY));
/// # drop(app);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sessions {
    idle: u64,
    absolute: u64,
    most: usize,
    most_per_address: usize,
}

const DAY: u64 = 24 * 60 * 60;
/// Browsers keep no cookie for longer (RFC 6265bis section 5.5).
const LONGEST: u64 = 400 * DAY;
/// No session is shorter: whoever wants that wants none.
const SHORTEST: u64 = 10;
/// In the data folder.
const KEYS: &str = "session-keys";
/// Seconds for which a session that is used looks the same to its browser and in the table.
const RENEWAL: u64 = 60 * 60;
/// Seconds by which the clocks of two machines may differ.
const SKEW: u64 = 5 * 60;
/// Of one request, cookies of the name that are looked at.
const MOST_COOKIES: usize = 4;

impl Sessions {
    /// As usual: a session ends when it was not used for 14 days, and after 90 days in any case; of a million at most
    /// something is kept, and of 4096 at most of one address's visitors who have not logged in.
    pub const fn new() -> Self {
        Self { idle: 14 * DAY, absolute: 90 * DAY, most: 1_000_000, most_per_address: 4096 }
    }

    /// For how long one may be unused, from ten seconds to 400 days. The key `session-idle` says it last. What is used is
    /// noted once an hour, or in a quarter of this time: a session may end so much earlier, never later.
    #[must_use]
    pub fn idle(mut self, time: Duration) -> Self {
        self.idle = time.as_secs().clamp(SHORTEST, LONGEST);
        self
    }

    /// For how long one lasts at most, from its beginning or from the last login on, used or not: from ten seconds to 400
    /// days. The key `session-absolute` says it last.
    #[must_use]
    pub fn absolute(mut self, time: Duration) -> Self {
        self.absolute = time.as_secs().clamp(SHORTEST, LONGEST);
        self
    }

    /// Of how many at most something is kept. When there are more, those go that were unused for longest, of visitors
    /// who have not logged in first.
    #[must_use]
    pub fn most(mut self, count: usize) -> Self {
        self.most = count.max(1);
        self
    }

    /// Of how many visitors from one address (IPv6: one /64) something is kept who have not logged in. When there are
    /// more, those of the same address go: first those that were not used since they were made, then the oldest. Clients
    /// of the server's own machine, as a proxy is, may have half of [all](Self::most). The address of a session is known
    /// until the next start.
    #[must_use]
    pub fn most_per_address(mut self, count: usize) -> Self {
        self.most_per_address = count.max(1);
        self
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self::new()
    }
}

/// The sessions of a program that runs.
pub(crate) struct Keeper {
    wish: Sessions,
    opened: OnceLock<Opened>,
    hearer: Hearer,
}

/// What there is once the tables are open.
pub(super) struct Opened {
    times: Sessions,
    keys: Keys,
    store: Store,
    /// By logins.
    ended: Ended,
    sweep: Sweep,
    quota: Quota,
}

impl Keeper {
    /// Not open yet.
    pub(crate) fn new(wish: Sessions) -> Self {
        Self { wish, opened: OnceLock::new(), hearer: Hearer::default() }
    }

    /// The store with the table of sessions.
    pub(crate) fn declare(options: Options) -> Options {
        options.table::<Row>().table::<frame::Row>()
    }

    /// Sessions can be looked at from here on. They last as the program says, unless `idle` or
    /// `absolute`, in seconds, say otherwise. Their keys are in the folder `data`, or end with the program.
    ///
    /// # Errors
    ///
    /// The keys cannot be read or written.
    pub(crate) fn open(
        self: &Arc<Self>,
        store: &Store,
        data: Option<&Path>,
        idle: Option<u32>,
        absolute: Option<u32>,
    ) -> Result<(), String> {
        let mut times = self.wish.clone();
        if let Some(seconds) = idle {
            times = times.idle(Duration::from_secs(seconds.into()));
        }
        if let Some(seconds) = absolute {
            times = times.absolute(Duration::from_secs(seconds.into()));
        }
        self.open_at(store, data, times, Time::now().unix())
    }

    fn open_at(
        self: &Arc<Self>,
        store: &Store,
        data: Option<&Path>,
        times: Sessions,
        now: u64,
    ) -> Result<(), String> {
        let lifetime = times.idle.max(times.absolute);
        let keys = match data.map(|folder| folder.join(KEYS)) {
            Some(path) => Keys::kept(&path, now, lifetime).map_err(|error| {
                format!(
                    "cannot keep the keys of sessions in {}: {error}; the data folder must belong to whom the server runs as",
                    path.display()
                )
            })?,
            None => Keys::passing(now, lifetime),
        };
        let (store, ended, sweep) = (store.clone(), Ended::default(), Sweep::default());
        let quota = Quota::default();
        // There is one start.
        let _ = self.opened.set(Opened { times, keys, store, ended, sweep, quota });
        self.listen(&self.opened().store);
        Ok(())
    }

    /// Of how many sessions something is kept; `None`: they are not open.
    pub(crate) fn count(&self) -> Option<usize> {
        Some(self.opened.get()?.store.read().count::<Row>())
    }

    /// Who asks, by the cookie of a session.
    pub(crate) fn recognize(self: &Arc<Self>, head: &Head<'_>, peer: Peer, now: u64) -> Who {
        match self.find(head, peer.is_secure(), now) {
            Some(found) => {
                Who::Known(Arc::new(Visit::new(Arc::clone(self), Some(found), peer, now)))
            }
            None => Who::Anonymous,
        }
    }

    /// The visit that a request is, for a function that is run for it. `None`: sessions are not open.
    pub(crate) fn visit_of(self: &Arc<Self>, incoming: &Incoming<'_>) -> Option<Arc<Visit>> {
        let Incoming { head, peer, arrival, .. } = incoming;
        // Somebody may have put another step before ours, which asks nobody who it is.
        let visit = Visit::of(incoming).or_else(|| self.visit(head, *peer, *arrival))?;
        visit.attend();
        Some(visit)
    }

    /// The same of one whose user was seen already, by who takes no session: a filter, or an argument that has the whole
    /// request. The reply is to know of it, and what waits by it.
    pub(crate) fn seen_visit_of(self: &Arc<Self>, incoming: &Incoming<'_>) -> Option<Arc<Visit>> {
        incoming.who.known::<Visit>().filter(|visit| visit.was_seen())?;
        self.visit_of(incoming)
    }

    /// The visit of somebody who was not recognized. `None`: sessions are not open.
    pub(crate) fn visit(
        self: &Arc<Self>,
        head: &Head<'_>,
        peer: Peer,
        now: u64,
    ) -> Option<Arc<Visit>> {
        self.opened.get()?;
        let found = self.find(head, peer.is_secure(), now);
        Some(Arc::new(Visit::new(Arc::clone(self), found, peer, now)))
    }

    fn find(&self, head: &Head<'_>, is_secure: bool, now: u64) -> Option<Found> {
        let fields = head.fields().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        let cookies = fields.filter_map(|(_, value)| str::from_utf8(value).ok());
        self.opened.get()?.find(cookies, cookie_name(is_secure), now)
    }

    /// What a visit has once there is one.
    pub(super) fn opened(&self) -> &Opened {
        self.opened.get().expect("a visit is made by sessions that are open")
    }
}

/// A session that was found.
pub(super) struct Found {
    badge: Badge,
    row: Option<Row>,
}

impl Opened {
    fn find<'c>(
        &self,
        cookies: impl Iterator<Item = &'c str>,
        name: &str,
        now: u64,
    ) -> Option<Found> {
        let pairs = cookies.flat_map(|field| field.split(';'));
        let pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
        // Of several, some may be of others: of another program on this host, or of one that would like to be ours.
        let mut own = pairs.filter(|(key, _)| *key == name).take(MOST_COOKIES);
        own.find_map(|(_, value)| {
            let badge = Badge::read(value, &self.keys, now);
            let found = badge.and_then(|badge| self.admit(badge, now));
            if found.is_none() {
                let why = "forged, foreign, too old or revoked";
                log::debug(format_args!("a cookie of a session was refused: {why}"));
            }
            found
        })
    }

    /// What this badge opens, unless the time of that is over, or it was ended.
    fn admit(&self, badge: Badge, now: u64) -> Option<Found> {
        let row = Row::find(&self.store.read().without_tracking(), &badge.id);
        let (made, seen) = match &row {
            Some(row) => (row.made.unix(), row.seen.unix()),
            // For whoever comes late another must not begin, whose cookie would take the place of the login's.
            None if badge.is_kept && !self.ended.has(&badge.id, now) => return None,
            None => (badge.made, badge.seen),
        };
        self.is_fresh(now, made, seen).then_some(Found { badge, row })
    }

    /// Whether a session has not ended by itself that began and was used then.
    fn is_fresh(&self, now: u64, made: u64, seen: u64) -> bool {
        age(now, made).is_some_and(|age| age < self.times.absolute)
            && age(now, seen).is_some_and(|age| age < self.times.idle)
    }

    /// When a session that began and was used then ends by itself, in seconds since 1970.
    fn end(&self, made: u64, seen: u64) -> u64 {
        made.saturating_add(self.times.absolute).min(seen.saturating_add(self.times.idle))
    }

    /// After how many seconds it is noted that a session is used.
    const fn renewal(&self) -> u64 {
        let quarter = self.times.idle / 4;
        if quarter < RENEWAL { quarter } else { RENEWAL }
    }

    fn sweep(&self, now: u64) {
        let idle = row::time(now.saturating_sub(self.times.idle));
        self.sweep.run(&self.store, self.most(), idle, &self.quota);
    }

    /// A row was made for somebody who has not logged in.
    fn note_row(&self, block: AddressBlock, row: &Row) {
        self.quota.note(block, Made { id: row.id, seen: row.seen }, self.most());
    }

    const fn most(&self) -> Most {
        Most { of_block: self.times.most_per_address, in_all: self.times.most }
    }
}

/// How many seconds ago that was. `None`: it has not been yet, so that some clock is wrong.
fn age(now: u64, then: u64) -> Option<u64> {
    (then <= now.saturating_add(SKEW)).then(|| now.saturating_sub(then))
}

/// With TLS a browser takes it from nobody else: not from another host of the domain, nor without TLS (RFC 6265bis
/// section 4.1.3.2).
const fn cookie_name(is_secure: bool) -> &'static str {
    if is_secure { "__Host-session" } else { "session" }
}

#[cfg(test)]
mod tests;
