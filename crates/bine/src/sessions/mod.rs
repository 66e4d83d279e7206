//! Sessions of visitors: recognizes clients by a signed cookie and stores their values for a
//! limited time.
//!
//! A session begins when a page first uses it; at first it is only a signed cookie. The server
//! inserts a row into the table `session` when a value is stored. All state is in the cookie, the
//! key file and the table, except for the ids that logins replaced in the last minute, which are in
//! memory.

mod caller;
mod choices;
mod cookie;
mod derived_keys;
mod frame;
mod generated_name;
pub(crate) mod keys;
pub(crate) mod login;
#[cfg(feature = "cluster")]
mod moved_keys;
mod replaced;
mod row_quota;
mod sealed_text;
mod session;
mod session_change;
mod session_row;
mod shared_keys;
mod subsystem;
mod sweep;
mod user;
mod visitor_session;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bine_http::Head;
use bine_log as log;
use bine_server::{AddressBlock, ClientAddress, Identity, Incoming};

use cookie::SessionCookie;
use keys::Keys;
use login::EndListener;
use replaced::ReplacedSessions;
use row_quota::{Quota, RowLimits, TrackedRow};
use session_row::SessionRow;
use sweep::Sweep;

use crate::credentials::{
    self, CredentialLogin, CredentialSource, PresentedCredential, RejectedCredential,
};
use crate::store::{self, Options, RowId, Store, Time, Transaction};
use crate::text::Text;

#[doc(hidden)]
pub use cookie::check_session;
#[cfg(feature = "script")]
pub(crate) use frame::RequestedFrame;
pub use frame::{Frame, FrameChange};
pub(crate) use login::Login;
#[cfg(feature = "cluster")]
pub(crate) use moved_keys::{share_keys, unshare_keys};
#[doc(hidden)]
pub use sealed_text::check_sealed;
pub use session::{Session, SessionInfo};
pub use session_change::SessionChange;
#[cfg(feature = "script")]
pub(crate) use session_change::SessionTransaction;
pub use user::User;
pub(crate) use visitor_session::VisitorSession;

/// How long sessions last and how many are stored: the argument of
/// [`App::sessions`](crate::App::sessions).
///
/// ```
/// use std::time::Duration;
///
/// use bine::{App, Sessions};
///
/// const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// let app = App::new().sessions(Sessions::new().idle_timeout(7 * DAY).absolute_timeout(30 * DAY));
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
/// Browsers limit the lifetime of a cookie to this (RFC 6265bis section 5.5).
const MAX_LIFETIME: u64 = 400 * DAY;
/// Seconds without use after which a brief session ends.
const BRIEF_IDLE: u64 = DAY;
/// The shortest lifetime of a session.
const MIN_LIFETIME: u64 = 10;
/// The name of the key file in the data folder.
const KEYS: &str = "session-keys";
/// Seconds after which the server renews the cookie and the row of a session in use.
const RENEWAL: u64 = 60 * 60;
/// Seconds by which the clocks of two machines may differ.
const SKEW: u64 = 5 * 60;
/// Session cookies that are tried per request.
pub(crate) const MAX_COOKIES: usize = 4;

impl Sessions {
    /// The defaults: a session ends after 14 days without use, and after 90 days in any case. At
    /// most a million sessions are stored, at most 4096 of them for visitors from one address who
    /// have not logged in.
    pub const fn new() -> Self {
        Self { idle: 14 * DAY, absolute: 90 * DAY, most: 1_000_000, most_per_address: 4096 }
    }

    /// Sets the time after which an unused session ends, from ten seconds to 400 days. The
    /// configuration key `session-idle` overrides it. The server records use once an hour, or once
    /// in a quarter of this time if that is shorter: a session may end that much earlier, never
    /// later.
    #[must_use]
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.idle = time.as_secs().clamp(MIN_LIFETIME, MAX_LIFETIME);
        self
    }

    /// Sets the time after which a session ends even if it is used, counted from its beginning or
    /// its last login: from ten seconds to 400 days. The configuration key `session-absolute`
    /// overrides it.
    #[must_use]
    pub fn absolute_timeout(mut self, time: Duration) -> Self {
        self.absolute = time.as_secs().clamp(MIN_LIFETIME, MAX_LIFETIME);
        self
    }

    /// Sets how many sessions are stored. Beyond that, the server removes those that were unused
    /// for longest, first those without a login.
    #[must_use]
    pub fn max_sessions(mut self, count: usize) -> Self {
        self.most = count.max(1);
        self
    }

    /// Sets how many sessions are stored for visitors from one address (IPv6: one /64) who have not
    /// logged in. Beyond that, the server removes sessions of the same address: first those that
    /// were not used since they began, then the oldest. Clients on the server's own machine, such
    /// as a proxy, may have half of [all](Self::max_sessions). The addresses of sessions are
    /// forgotten at a restart.
    #[must_use]
    pub fn max_sessions_per_address(mut self, count: usize) -> Self {
        self.most_per_address = count.max(1);
        self
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self::new()
    }
}

/// The sessions of a running program.
pub(crate) struct SessionStore {
    wish: Sessions,
    opened: OnceLock<OpenSessions>,
    end_listener: EndListener,
    /// Finds the users of credentials, if the program has any.
    credentials: OnceLock<Arc<dyn CredentialSource>>,
}

/// The state of the sessions once the tables are open.
pub(super) struct OpenSessions {
    times: Sessions,
    keys: Keys,
    store: Store,
    /// Sessions that a login has replaced.
    replaced: ReplacedSessions,
    sweep: Sweep,
    quota: Quota,
}

impl SessionStore {
    /// Creates the sessions; [`open`](Self::open) opens them.
    pub(crate) fn new(wish: Sessions) -> Self {
        Self {
            wish,
            opened: OnceLock::new(),
            end_listener: EndListener::default(),
            credentials: OnceLock::new(),
        }
    }

    /// Adds the tables of sessions to the store's options.
    pub(crate) fn declare(options: Options) -> Options {
        options.table::<SessionRow>().table::<frame::FrameRow>()
    }

    /// Opens the sessions. `idle` and `absolute`, in seconds, override the program's settings. The
    /// keys are in the folder `data`; without it they are lost when the program ends.
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
            times = times.idle_timeout(Duration::from_secs(seconds.into()));
        }
        if let Some(seconds) = absolute {
            times = times.absolute_timeout(Duration::from_secs(seconds.into()));
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
        let path = data.map(|folder| folder.join(KEYS));
        let keys = match path {
            _ if store.is_shared() => Keys::shared(store, now, lifetime)
                .map_err(|error| format!("cannot share the keys of sessions: {error}"))?,
            Some(path) => Keys::load(&path, now, lifetime).map_err(|error| {
                format!(
                    "cannot keep the keys of sessions in {}: {error}; the data folder must belong to whom the server runs as",
                    path.display()
                )
            })?,
            None => Keys::in_memory(now, lifetime),
        };
        let (store, replaced, sweep) =
            (store.clone(), ReplacedSessions::default(), Sweep::default());
        let quota = Quota::default();
        // The program starts once, so the cell is empty.
        let _ = self.opened.set(OpenSessions { times, keys, store, replaced, sweep, quota });
        self.listen(&self.opened().store);
        Ok(())
    }

    /// Returns how many sessions are stored; `None`: they are not open.
    pub(crate) fn count(&self) -> Option<usize> {
        Some(self.opened.get()?.store.read().count::<SessionRow>())
    }

    /// The keys that sign cookies; `None`: the sessions are not open.
    pub(crate) fn keys(&self) -> Option<&Keys> {
        Some(&self.opened.get()?.keys)
    }

    /// Identifies the client by its credential, or else by its session cookie.
    pub(crate) fn recognize(
        self: &Arc<Self>,
        head: &Head<'_>,
        peer: ClientAddress,
        now: u64,
    ) -> Identity {
        if let Some(source) = self.credentials.get()
            && let Some(presented) = credentials::presented(head)
        {
            return self.recognize_credential(&**source, &presented, peer, now);
        }
        match self.find(head, peer.is_secure(), now) {
            Some(found) => Identity::Known(Arc::new(VisitorSession::new(
                Arc::clone(self),
                Some(found),
                peer,
                now,
            ))),
            None => Identity::Anonymous,
        }
    }

    fn recognize_credential(
        self: &Arc<Self>,
        source: &dyn CredentialSource,
        presented: &PresentedCredential<'_>,
        peer: ClientAddress,
        now: u64,
    ) -> Identity {
        let is_of_user = |login: &CredentialLogin| {
            presented.user.as_deref().is_none_or(|name| name.is_empty() || *name == *login.user)
        };
        match source.find(&presented.secret, now).filter(is_of_user) {
            Some(login) => Identity::Known(Arc::new(VisitorSession::of_credential(
                Arc::clone(self),
                login,
                peer,
                now,
            ))),
            None => Identity::Known(Arc::new(RejectedCredential)),
        }
    }

    /// The session of a request for which a handler runs. `None`: sessions are not open.
    pub(crate) fn visit_of(
        self: &Arc<Self>,
        incoming: &Incoming<'_>,
    ) -> Option<Arc<VisitorSession>> {
        let Incoming { head, peer, arrival, .. } = incoming;
        // A middleware of the program may run before the one that identifies clients.
        let visitor_session =
            VisitorSession::of(incoming).or_else(|| self.visitor_session(head, *peer, *arrival))?;
        visitor_session.attend();
        Some(visitor_session)
    }

    /// The session of a request whose user a filter, or an argument with the whole request, has
    /// read. The response must then be private, and subscriptions end with the login.
    pub(crate) fn seen_visit_of(
        self: &Arc<Self>,
        incoming: &Incoming<'_>,
    ) -> Option<Arc<VisitorSession>> {
        incoming
            .identity
            .known::<VisitorSession>()
            .filter(|visitor_session| visitor_session.was_seen())?;
        self.visit_of(incoming)
    }

    /// The session of a request whose client was not identified. `None`: sessions are not open.
    pub(crate) fn visitor_session(
        self: &Arc<Self>,
        head: &Head<'_>,
        peer: ClientAddress,
        now: u64,
    ) -> Option<Arc<VisitorSession>> {
        self.opened.get()?;
        let found = self.find(head, peer.is_secure(), now);
        Some(Arc::new(VisitorSession::new(Arc::clone(self), found, peer, now)))
    }

    fn find(&self, head: &Head<'_>, is_secure: bool, now: u64) -> Option<FoundSession> {
        let fields = head.fields().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        let cookies = fields.filter_map(|(_, value)| str::from_utf8(value).ok());
        self.opened.get()?.find(cookies, cookie_name(is_secure), now)
    }

    /// The open sessions; a visitor session exists only once they are open.
    pub(super) fn opened(&self) -> &OpenSessions {
        self.opened.get().expect("a visitor session exists only while sessions are open")
    }
}

/// Ends the sessions of a user except one, as a part of a transaction. Returns their number.
///
/// # Errors
///
/// A row cannot be removed.
pub(crate) fn end_sessions(
    change: &mut Transaction,
    user: &Text,
    except: Option<RowId>,
) -> Result<usize, store::Error> {
    let mut rows = SessionRow::of_user(change, user);
    rows.retain(|row| Some(row.id.row()) != except);
    for row in &rows {
        change.remove(row.id)?;
    }
    Ok(rows.len())
}

/// A session that a cookie names.
pub(super) struct FoundSession {
    cookie: SessionCookie,
    row: Option<SessionRow>,
}

impl OpenSessions {
    fn find<'c>(
        &self,
        cookies: impl Iterator<Item = &'c str>,
        name: &str,
        now: u64,
    ) -> Option<FoundSession> {
        let pairs = cookies.flat_map(|field| field.split(';'));
        let pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
        // There may be several cookies of this name: from a different program on this host, or from
        // an attacker.
        let mut own = pairs.filter(|(key, _)| *key == name).take(MAX_COOKIES);
        own.find_map(|(_, value)| {
            let cookie = SessionCookie::read(value, &self.keys, now);
            let found = cookie.and_then(|cookie| self.admit(cookie, now));
            if found.is_none() {
                let why = "forged, foreign, too old or revoked";
                log::debug(format_args!("rejected a session cookie: {why}"));
            }
            found
        })
    }

    /// Returns the session of this cookie, unless it has expired or was ended.
    fn admit(&self, cookie: SessionCookie, now: u64) -> Option<FoundSession> {
        let row = SessionRow::find(&self.store.read().without_tracking(), &cookie.id);
        let is_fresh = match &row {
            Some(row) => self.is_row_fresh(now, row),
            // A late request must not begin a new session: its cookie would replace the login's.
            None if cookie.is_kept && !self.replaced.contains(&cookie.id, now) => return None,
            None => self.is_fresh(now, (cookie.made, cookie.seen), self.times.idle),
        };
        is_fresh.then_some(FoundSession { cookie, row })
    }

    fn is_row_fresh(&self, now: u64, row: &SessionRow) -> bool {
        self.is_fresh(now, (row.made.unix(), row.seen.unix()), self.idle_of(row))
    }

    /// Whether a session that began and was used at these times has not expired.
    fn is_fresh(&self, now: u64, (made, seen): (u64, u64), idle: u64) -> bool {
        age(now, made).is_some_and(|age| age < self.times.absolute)
            && age(now, seen).is_some_and(|age| age < idle)
    }

    /// Seconds without use after which the session of this row ends.
    fn idle_of(&self, row: &SessionRow) -> u64 {
        if row.is_brief { self.times.idle.min(BRIEF_IDLE) } else { self.times.idle }
    }

    /// When the session of this row expires, in seconds since 1970.
    fn end_of_row(&self, row: &SessionRow) -> u64 {
        self.end((row.made.unix(), row.seen.unix()), self.idle_of(row))
    }

    /// When a session that began and was used at these times expires, in seconds since 1970.
    fn end(&self, (made, seen): (u64, u64), idle: u64) -> u64 {
        made.saturating_add(self.times.absolute).min(seen.saturating_add(idle))
    }

    /// Seconds after which use of a session is recorded again.
    const fn renewal(&self) -> u64 {
        let quarter = self.times.idle / 4;
        if quarter < RENEWAL { quarter } else { RENEWAL }
    }

    fn sweep(&self, now: u64) {
        let idle = session_row::time(now.saturating_sub(self.times.idle));
        self.sweep.run(&self.store, self.most(), idle, &self.quota);
    }

    /// Counts a row of a visitor without a login.
    fn note_row(&self, block: AddressBlock, row: &SessionRow) {
        self.quota.track(block, TrackedRow { id: row.id, seen: row.seen }, self.most());
    }

    const fn most(&self) -> RowLimits {
        RowLimits { per_block: self.times.most_per_address, total: self.times.most }
    }
}

/// Seconds since `then`. `None`: it is in the future, so a clock is wrong.
fn age(now: u64, then: u64) -> Option<u64> {
    (then <= now.saturating_add(SKEW)).then(|| now.saturating_sub(then))
}

/// With TLS, the `__Host-` prefix makes browsers reject the cookie from other hosts of the domain
/// and from responses without TLS (RFC 6265bis section 4.1.3.2).
const fn cookie_name(is_secure: bool) -> &'static str {
    if is_secure { "__Host-session" } else { "session" }
}

#[cfg(test)]
mod tests;
