//! The login of a long-lived subscription: whether it is still valid, and how its end is reported.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use super::SessionStore;
use super::session_row::SessionRow;
use crate::credentials::CredentialSource;
use crate::store::{Id, RowId, Store};
use crate::text::Text;

/// A user's session or credential, on which a subscription depends.
#[derive(Clone)]
pub(crate) struct Login {
    source: LoginSource,
    row: RowId,
    /// The user's name.
    pub(crate) user: Text,
    /// When it expires, in seconds since 1970, unless it [is used](Self::lasts) before.
    pub(crate) until: u64,
}

/// Where the row of a login is.
#[derive(Clone)]
pub(super) enum LoginSource {
    Session(Arc<SessionStore>),
    Credential(Arc<dyn CredentialSource>),
}

/// A listener for rows of sessions that were changed or removed; `None`: too many to list.
type ListenerFn = Box<dyn Fn(Option<&[RowId]>) + Send + Sync>;

/// The listener for sessions that end.
#[derive(Default)]
pub(super) struct EndListener(OnceLock<ListenerFn>);

impl Login {
    pub(super) const fn new(source: LoginSource, row: RowId, user: Text, until: u64) -> Self {
        Self { source, row, user, until }
    }

    /// Its row, by which changes are [reported](SessionStore::tell).
    pub(crate) const fn row(&self) -> RowId {
        self.row
    }

    /// A mark that distinguishes this login from others in a page rendered for it. It is not secret
    /// and identifies no person.
    pub(crate) fn word(&self) -> u64 {
        // The upper half holds the time of the insertion.
        self.row().number() as u64
    }

    /// Whether the login is valid. Each row belongs to one login, so it is enough that the row
    /// exists.
    pub(crate) fn holds(&self) -> bool {
        self.lasts().is_some()
    }

    /// When the login expires unless it is used, in seconds since 1970. `None`: it was ended.
    pub(crate) fn lasts(&self) -> Option<u64> {
        match &self.source {
            LoginSource::Session(session_store) => {
                let opened = session_store.opened();
                let id = Id::<SessionRow>::of(self.row);
                let row = opened.store.read().without_tracking().get(id)?;
                Some(opened.end_of_row(&row))
            }
            LoginSource::Credential(source) => source.lasts(self.row),
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Login({})", self.user)
    }
}

impl SessionStore {
    /// Calls `listener` for sessions that may have ended. It is called within the commit, so it
    /// must be fast.
    pub(crate) fn tell(&self, listener: impl Fn(Option<&[RowId]>) + Send + Sync + 'static) {
        // The program starts once, so the cell is empty.
        let _ = self.end_listener.0.set(Box::new(listener));
    }

    /// Observes changes of the rows.
    pub(super) fn listen(self: &Arc<Self>, store: &Store) {
        let own: Weak<Self> = Arc::downgrade(self);
        store.observe(move |changes| {
            let Some(session_store) = own.upgrade() else { return };
            if let (Some(listener), Some(opened)) =
                (session_store.end_listener.0.get(), session_store.opened.get())
            {
                let rows = opened.store.read().without_tracking().changed::<SessionRow>(changes);
                if rows.is_none_or(|rows| !rows.is_empty()) {
                    listener(rows);
                }
            }
        });
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::super::Sessions;
    use super::super::cookie::SessionCookie;
    use super::*;
    use crate::store::Options;

    /// A login of Ann, and a function that ends it.
    pub(crate) fn login() -> (Login, impl FnOnce()) {
        let store = Store::in_memory(SessionStore::declare(Options::new())).unwrap();
        let session_store = Arc::new(SessionStore::new(Sessions::new()));
        session_store.open_at(&store, None, Sessions::new(), 0).unwrap();
        let row =
            SessionRow { user: Some("ann".into()), ..SessionRow::new(&SessionCookie::new(0)) };
        let row = store.change(move |change| change.insert(row.clone())).wait().unwrap();
        let source = LoginSource::Session(session_store);
        let login = Login::new(source, row.row(), "ann".into(), u64::MAX);
        (login, move || assert!(store.change(move |change| change.remove(row)).wait().unwrap()))
    }
}
