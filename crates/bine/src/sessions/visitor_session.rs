//! The session of one request: handlers read it, live pages record these reads, and the response
//! sets the cookie.

use std::any::Any;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_http::Head;
use bine_server::{AddressBlock, Body, ClientAddress, Identity, Incoming, Principal};

use super::cookie::SessionCookie;
use super::generated_name::name_of;
use super::login::LoginSource;
use super::sealed_text;
use super::session_row::{SessionRow, time};
use super::{FoundSession, Login, OpenSessions, SessionStore, age, cookie_name};
use crate::arguments::{Rejection, RequestParts};
use crate::credentials::{
    CredentialLogin, CredentialRefusal, CredentialSource, RejectedCredential,
};
use crate::request_session::{RequestSession, SessionProvider, note_user};
use crate::store::{Id, Recorder, Snapshot};
use crate::text::Text;
use crate::trace::{self, RenderTrace, RequestDependency};

/// The session of one request, shared by its [`Session`](super::Session) values and its response.
///
/// Pages read it only through [`look_at_user`](Self::look_at_user) and
/// [`look_at_session`](Self::look_at_session), which record the dependency. Code that has the
/// request without a session argument uses [`look_at_user_of`](Self::look_at_user_of).
pub(crate) struct VisitorSession {
    session_store: Arc<SessionStore>,
    is_secure: bool,
    /// The client's address block, for the quota of rows.
    block: AddressBlock,
    pub(super) now: u64,
    /// The content of the request's cookie.
    shown: Option<SessionCookie>,
    /// The login by a credential of the request, instead of a cookie.
    credential: Option<CredentialLogin>,
    /// The user at the time when the request arrived.
    user: Option<Text>,
    state: Mutex<SessionState>,
    /// Whether code without a session argument has read the user.
    is_seen: AtomicBool,
    /// The trace of the render that this request causes, if any.
    pub(super) trace: Option<Arc<dyn RenderTrace>>,
    /// Records the tables that this render reads.
    recorder: Option<Recorder>,
}

/// The state of a session during its request.
#[derive(Clone)]
pub(super) struct SessionState {
    /// `None`: there is no session yet.
    cookie: Option<SessionCookie>,
    row: Option<SessionRow>,
    /// Whether the credential of the request has ended meanwhile.
    has_ended: bool,
    cookie_change: CookieChange,
    /// Whether the row must be updated with the time of this use.
    is_due: bool,
}

/// The change of the cookie in the response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CookieChange {
    None,
    Set,
    Clear,
}

/// The state of a session after a change.
pub(super) enum NextState {
    Unchanged,
    /// The session has this row now.
    Stored(SessionRow),
    /// A login has replaced the session; this is the new row.
    Replaced(SessionRow),
    /// The session has ended.
    Ended,
}

/// How a change has affected the state of a session.
pub(super) enum StateChange {
    None,
    Changed {
        /// The row of a visitor without a login, if the session had no row before.
        inserted: Option<Box<SessionRow>>,
    },
}

impl VisitorSession {
    /// The session of a client that was identified when the request arrived. If the request has a
    /// body, the session is read again, since it may have ended while the body arrived.
    pub(crate) fn of(request: &Incoming<'_>) -> Option<Arc<Self>> {
        let visitor_session = request.identity.known::<Self>()?;
        if matches!(request.body, Body::InMemory(_) | Body::OnDisk(_)) {
            visitor_session.look_again();
        }
        Some(visitor_session)
    }

    pub(super) fn new(
        session_store: Arc<SessionStore>,
        found: Option<FoundSession>,
        peer: ClientAddress,
        now: u64,
    ) -> Self {
        let (is_secure, block) = (peer.is_secure(), peer.block());
        let shown = found.as_ref().map(|found| found.cookie);
        let state = SessionState::of(found, session_store.opened(), now);
        let user = state.row.as_ref().and_then(|row| row.user.clone());
        let (state, is_seen) = (Mutex::new(state), AtomicBool::new(false));
        let (trace, recorder) = (trace::current(), Recorder::current());
        Self {
            session_store,
            is_secure,
            block,
            now,
            shown,
            credential: None,
            user,
            state,
            is_seen,
            trace,
            recorder,
        }
    }

    /// The session of a client that was identified by a credential. The session has values and
    /// frames as others do, by an id that belongs to the credential, and no cookie.
    pub(super) fn of_credential(
        session_store: Arc<SessionStore>,
        login: CredentialLogin,
        peer: ClientAddress,
        now: u64,
    ) -> Self {
        let cookie = SessionCookie {
            id: login.session,
            is_kept: false,
            seed: u16::from_be_bytes([login.session[0], login.session[1]]) & 0xfff,
            made: now,
            seen: now,
        };
        let found = session_store.opened().admit(cookie, now);
        let mut own = Self::new(session_store, found, peer, now);
        own.user = Some(login.user.clone());
        own.credential = Some(login);
        own
    }

    /// The login by a credential, if the request has one.
    pub(crate) const fn credential(&self) -> Option<&CredentialLogin> {
        self.credential.as_ref()
    }

    /// The logged-in user in this state.
    fn user_in(&self, state: &SessionState) -> Option<Text> {
        match &self.credential {
            Some(login) => (!state.has_ended).then(|| login.user.clone()),
            None => state.row.as_ref().and_then(|row| row.user.clone()),
        }
    }

    /// Records that the session is used, because a handler runs. The request does not wait for the
    /// commit; if it fails, the next request tries again.
    pub(crate) fn attend(&self) {
        // A re-render of a live page is not a request of the client.
        if self.trace.is_some() {
            return;
        }
        let mut state = self.state();
        let due = state.row.as_ref().map(|row| row.id).filter(|_| state.is_due);
        state.is_due = false;
        drop(state);
        if let Some(id) = due {
            touch(self.opened(), id, self.now);
        }
        if let Some((login, source)) = self.credential_with_source() {
            source.record_use(login, self.now);
        }
    }

    /// The login by a credential, and what knows whether it has ended.
    fn credential_with_source(&self) -> Option<(&CredentialLogin, &Arc<dyn CredentialSource>)> {
        self.credential.as_ref().zip(self.session_store.credentials.get())
    }

    /// Reads the session again, which may have ended since the cookie was verified.
    fn look_again(&self) {
        if let Some((login, source)) = self.credential_with_source() {
            self.state().has_ended = source.lasts(login.row).is_none();
            return;
        }
        let Some(cookie) = self.shown else { return };
        let opened = self.opened();
        *self.state() = SessionState::of(opened.admit(cookie, self.now), opened, self.now);
    }

    /// Begins a session if necessary, and records no dependency.
    pub(crate) fn begin(&self) {
        self.state().begin(self.now);
    }

    /// The name that other visitors see: the user's, or the session's generated one. This records
    /// no dependency.
    pub(crate) fn name(&self) -> Text {
        let state = self.state();
        let seed = || name_of(state.cookie.map_or(0, |cookie| cookie.seed));
        self.user.clone().unwrap_or_else(seed)
    }

    /// The id of the session, if it has begun. This records no dependency.
    pub(crate) fn id(&self) -> Option<[u8; 16]> {
        self.state().cookie.map(|cookie| cookie.id)
    }

    /// The logged-in user. Records a dependency on the user only.
    pub(crate) fn look_at_user(&self) -> Option<Text> {
        let state = self.state();
        let user = self.user_in(&state);
        RequestDependency::User.note_for(self.trace.as_deref(), || {
            user.as_ref().map_or_else(Vec::new, |user| user.as_bytes().to_vec())
        });
        self.note_end(&state);
        user
    }

    /// The logged-in user, for code without a session argument, such as a filter. The
    /// response is [private](Self::was_seen) from then on.
    pub(crate) fn look_at_user_of<'r>(request: &Incoming<'r>) -> Option<&'r str> {
        let user = request.identity.user();
        let Some(visitor_session) = Self::of(request) else {
            return note_user(request);
        };
        let user = visitor_session.look_at_user().and(user);
        if user.is_some() {
            visitor_session.is_seen.store(true, Ordering::Relaxed);
        }
        user
    }

    /// Whether code without a session argument has read the user.
    pub(super) fn was_seen(&self) -> bool {
        self.is_seen.load(Ordering::Relaxed)
    }

    /// Downcasts a session to this module's type.
    pub(crate) fn of_session(session: Arc<dyn RequestSession>) -> Option<Arc<Self>> {
        let session: Arc<dyn Any + Send + Sync> = session;
        session.downcast().ok()
    }

    /// Calls `look` with the session, which this call begins if necessary. Records a dependency on
    /// the whole session.
    pub(super) fn look_at_session<T>(
        &self,
        look: impl FnOnce(&SessionCookie, Option<&SessionRow>) -> T,
    ) -> T {
        let mut state = self.state();
        let cookie = state.begin(self.now);
        RequestDependency::Session.note_for(self.trace.as_deref(), || cookie.id.to_vec());
        self.note_end(&state);
        look(&cookie, state.row.as_ref())
    }

    /// The login of the session, for a subscription that outlives the request.
    pub(crate) fn login(&self) -> Option<Login> {
        let state = self.state();
        if let Some((login, source)) = self.credential_with_source() {
            let source = LoginSource::Credential(Arc::clone(source));
            return Some(Login::new(source, login.row, self.user_in(&state)?, login.until));
        }
        let row = state.row.as_ref()?;
        let until = self.opened().end_of_row(row);
        let source = LoginSource::Session(Arc::clone(&self.session_store));
        Some(Login::new(source, row.id.row(), row.user.clone()?, until))
    }

    /// The response fields: shared caches must not store the response. For a user, neither may the
    /// browser: it could show a page again after the logout, by the button Back.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, Cow<'static, str>)> {
        let state = self.state();
        let vary = if self.credential.is_some() { "Authorization" } else { "Cookie" };
        let cookie = match (state.cookie_change, &state.cookie) {
            // A client with a credential needs no cookie.
            _ if self.credential.is_some() => None,
            // The browser has the cookie of the login already, or receives it soon.
            (CookieChange::Set, Some(cookie)) if !self.was_replaced(cookie) => {
                let is_brief = state.row.as_ref().is_some_and(|row| row.is_brief);
                Some(self.cookie(cookie, is_brief))
            }
            (CookieChange::Clear, _) => Some(self.set_cookie("", Some(0))),
            _ => None,
        };
        let has_user = self.user_in(&state).is_some();
        let control = if has_user { "no-store" } else { "private, no-cache" };
        let always = [("Vary", vary.into()), ("Cache-Control", control.into())];
        always.into_iter().chain(cookie.map(|cookie| ("Set-Cookie", cookie.into())))
    }

    /// Seals `content` for this visitor's session, which this call begins if necessary. The same
    /// content and key give the same text. It opens for the same `purpose` only.
    pub(crate) fn seal(&self, purpose: &str, content: &[u8]) -> String {
        let session = self.look_at_session(|cookie, _| cookie.id);
        sealed_text::seal(&self.opened().keys, self.now, (purpose, &session), content)
    }

    /// Opens a text that was [sealed](Self::seal) for this visitor's session and purpose. It begins
    /// no session.
    pub(crate) fn open_seal(&self, purpose: &str, text: &str) -> Option<Vec<u8>> {
        let session = self.known_session()?;
        sealed_text::open(&self.opened().keys, self.now, (purpose, &session), text)
    }

    /// Sets the session's state after a change.
    pub(super) fn settle(&self, next: NextState) {
        self.finish_change(self.change_state(next));
    }

    /// Sets the session's state for the rest of the request.
    pub(super) fn change_state(&self, next: NextState) -> StateChange {
        let mut state = self.state();
        let mut inserted = None;
        match next {
            NextState::Unchanged => return StateChange::None,
            // A change that ran concurrently with a login belongs to the session before.
            NextState::Stored(row) if state.cookie.is_none_or(|cookie| row.key != cookie.id) => {
                return StateChange::None;
            }
            NextState::Stored(row) | NextState::Replaced(row) => {
                if state.row.is_none() && row.user.is_none() {
                    inserted = Some(Box::new(row.clone()));
                }
                let cookie = row.cookie(self.now);
                // The browser knows about a row that existed before.
                if state.cookie != cookie {
                    state.cookie_change = CookieChange::Set;
                }
                (state.cookie, state.row) = (cookie, Some(row));
            }
            NextState::Ended => {
                let cookie = Some(SessionCookie::new(self.now));
                *state = SessionState {
                    cookie,
                    row: None,
                    has_ended: state.has_ended,
                    cookie_change: CookieChange::Clear,
                    is_due: false,
                };
            }
        }
        StateChange::Changed { inserted }
    }

    /// Keeps the quotas of rows after a change that is stored.
    pub(super) fn finish_change(&self, change: StateChange) {
        let StateChange::Changed { inserted } = change else { return };
        if let Some(row) = inserted {
            self.opened().note_row(self.block, &row);
        }
        self.opened().sweep(self.now);
    }

    /// A copy of the state, to restore it if a transaction fails.
    #[cfg(feature = "script")]
    pub(super) fn copy_state(&self) -> SessionState {
        self.state().clone()
    }

    #[cfg(feature = "script")]
    pub(super) fn restore_state(&self, state: SessionState) {
        *self.state() = state;
    }

    /// A snapshot of all tables. A live page that reads it depends on the rows it reads.
    pub(super) fn tables(&self) -> Snapshot {
        let store = &self.opened().store;
        match &self.recorder {
            Some(recorder) => store.with_recorder(recorder).read(),
            None => store.read().without_tracking(),
        }
    }

    pub(super) fn opened(&self) -> &OpenSessions {
        self.session_store.opened()
    }

    /// Whether there is a session. It never begins a session.
    pub(super) fn look_for_session(&self) -> bool {
        let state = self.state();
        RequestDependency::Session.note_for(self.trace.as_deref(), || {
            state.cookie.map_or_else(Vec::new, |cookie| cookie.id.to_vec())
        });
        self.note_end(&state);
        state.cookie.is_some_and(|cookie| state.row.is_some() || !self.was_replaced(&cookie))
    }

    /// Whether the request's cookie named a valid session.
    pub(super) const fn came_with_session(&self) -> bool {
        self.shown.is_some()
    }

    /// The id of the session that the cookie named, if it still exists. It never begins a session.
    pub(super) fn known_session(&self) -> Option<[u8; 16]> {
        self.look_for_session().then(|| self.look_at_session(|cookie, _| cookie.id))
    }

    /// Records when the session expires, for live pages.
    fn note_end(&self, state: &SessionState) {
        let Some(trace) = &self.trace else { return };
        if let Some(login) = &self.credential {
            trace.record_expiry(login.until);
        }
        // Reading the row records a dependency on it, even if it does not exist.
        if let Some(cookie) = &state.cookie {
            SessionRow::find(&self.tables(), &cookie.id);
        }
        let opened = self.opened();
        let end = match (&state.row, &state.cookie) {
            (Some(row), _) => Some(opened.end_of_row(row)),
            (None, Some(cookie)) => Some(opened.end((cookie.made, cookie.seen), opened.times.idle)),
            (None, None) => None,
        };
        if let Some(end) = end {
            trace.record_expiry(end);
        }
    }

    /// Whether a login has replaced the session of this cookie, so that this request is late.
    pub(super) fn was_replaced(&self, cookie: &SessionCookie) -> bool {
        self.opened().replaced.contains(&cookie.id, self.now)
    }

    fn cookie(&self, cookie: &SessionCookie, is_brief: bool) -> String {
        let OpenSessions { times, keys, .. } = self.opened();
        let left = cookie.made.saturating_add(times.absolute).saturating_sub(self.now);
        let seconds = (!is_brief).then_some(left.min(times.idle));
        self.set_cookie(&cookie.text(keys, self.now), seconds)
    }

    /// The field of the cookie. Without an age, the browser drops the cookie when it ends.
    fn set_cookie(&self, value: &str, seconds: Option<u64>) -> String {
        let name = cookie_name(self.is_secure);
        let age = seconds.map_or_else(String::new, |seconds| format!("; Max-Age={seconds}"));
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/{age}; HttpOnly; SameSite=Lax{secure}")
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionState {
    fn of(found: Option<FoundSession>, opened: &OpenSessions, now: u64) -> Self {
        let Some(FoundSession { cookie, row }) = found else {
            return Self {
                cookie: None,
                row: None,
                has_ended: false,
                cookie_change: CookieChange::None,
                is_due: false,
            };
        };
        let is_due = |then: u64| age(now, then).is_some_and(|age| age >= opened.renewal());
        let current = row.as_ref().and_then(|row| row.cookie(now));
        // A cookie from before the row was inserted must be replaced.
        let is_cookie_due = is_due(cookie.seen) || cookie.is_kept != row.is_some();
        Self {
            has_ended: false,
            cookie: current.or(Some(SessionCookie { seen: now, ..cookie })),
            cookie_change: if is_cookie_due { CookieChange::Set } else { CookieChange::None },
            is_due: row.as_ref().is_some_and(|row| is_due(row.seen.unix())),
            row,
        }
    }

    fn begin(&mut self, now: u64) -> SessionCookie {
        if let Some(cookie) = self.cookie {
            return cookie;
        }
        self.cookie_change = CookieChange::Set;
        *self.cookie.insert(SessionCookie::new(now))
    }
}

impl RequestParts<'_> {
    /// The session of the request, for the argument called `name`.
    pub(super) fn visitor_session(
        &mut self,
        name: &'static str,
    ) -> Result<Arc<VisitorSession>, Rejection> {
        if self.visitor_session.is_none() {
            let sessions = self.app.sessions.as_ref();
            self.visitor_session = sessions.and_then(|own| own.session_of(self.incoming));
        }
        self.visitor_session.clone().and_then(VisitorSession::of_session).ok_or_else(|| {
            Rejection::invalid(
                name,
                "needs sessions, which this program does not have: add `.sessions(..)` to the app",
            )
        })
    }
}

impl RequestSession for VisitorSession {
    fn response_fields(&self) -> Vec<(&'static str, Cow<'static, str>)> {
        self.fields().collect()
    }

    fn login_number(&self) -> Option<u64> {
        Some(self.login()?.word())
    }

    fn look_at_user(&self) -> Option<Text> {
        Self::look_at_user(self)
    }

    fn open_seal(&self, purpose: &str, sealed: &str) -> Option<Vec<u8>> {
        Self::open_seal(self, purpose, sealed)
    }

    fn seal(&self, purpose: &str, content: &[u8]) -> String {
        Self::seal(self, purpose, content)
    }

    fn begin(&self) {
        Self::begin(self);
    }
}

impl SessionProvider for Arc<SessionStore> {
    fn identify(&self, head: &Head<'_>, peer: ClientAddress, now: u64) -> Identity {
        self.recognize(head, peer, now)
    }

    fn session_of(&self, request: &Incoming<'_>) -> Option<Arc<dyn RequestSession>> {
        Some(self.visit_of(request)?)
    }

    fn use_credentials(&self, source: Arc<dyn CredentialSource>) {
        // The program starts once, so the cell is empty.
        let _ = self.credentials.set(source);
    }

    fn refusal(&self, path: &str, request: &Incoming<'_>) -> Option<CredentialRefusal> {
        if request.identity.known::<RejectedCredential>().is_some() {
            return Some(CredentialRefusal::Invalid);
        }
        let visitor_session = request.identity.known::<VisitorSession>()?;
        let scope = &visitor_session.credential()?.scope;
        let is_permitted = scope.permits(request.head.method(), path);
        (!is_permitted).then(|| CredentialRefusal::OutOfScope(Arc::clone(scope)))
    }

    fn seen_session_of(&self, request: &Incoming<'_>) -> Option<Arc<dyn RequestSession>> {
        Some(self.seen_visit_of(request)?)
    }

    fn look_at_user<'r>(&self, request: &Incoming<'r>) -> Option<&'r str> {
        VisitorSession::look_at_user_of(request)
    }
}

/// A client with an invalid credential is no user.
impl Principal for RejectedCredential {
    fn user(&self) -> Option<&str> {
        None
    }
}

/// The identity for admission and the access log: the user when the request arrived. It records no
/// dependency.
impl Principal for VisitorSession {
    fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }
}

fn touch(opened: &OpenSessions, id: Id<SessionRow>, now: u64) {
    let mut change = opened.store.begin();
    let touched = change.update(id, |row: &mut SessionRow| row.seen = row.seen.max(time(now)));
    if touched.is_ok() {
        // After a conflict, a concurrent request has recorded it, or has ended the session.
        let _ = opened.store.commit(change);
    }
}
