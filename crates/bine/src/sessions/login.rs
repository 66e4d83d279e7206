//! Decides by what somebody who waits is known to be logged in still, and how it is told that a session has ended.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use super::Keeper;
use super::row::Row;
use crate::store::{Id, RowId, Store};
use crate::text::Text;

/// A session of a user, for whoever waits by it.
#[derive(Clone)]
pub(crate) struct Login {
    keeper: Arc<Keeper>,
    row: Id<Row>,
    /// Who has logged in.
    pub(crate) user: Text,
    /// It ends then by itself, in seconds since 1970, unless it [is used](Self::lasts) meanwhile.
    pub(crate) until: u64,
}

/// Is told which rows of sessions have changed or gone; `None`: too many to say.
type Hear = Box<dyn Fn(Option<&[RowId]>) + Send + Sync>;

/// Whoever wants to be told of sessions that end.
#[derive(Default)]
pub(super) struct Hearer(OnceLock<Hear>);

impl Login {
    pub(super) const fn new(keeper: Arc<Keeper>, row: Id<Row>, user: Text, until: u64) -> Self {
        Self { keeper, row, user, until }
    }

    /// By this it is named in what is [heard](Keeper::tell).
    pub(crate) fn row(&self) -> RowId {
        self.row.row()
    }

    /// What tells it from other logins, in a page that is made for it: no secret, and nothing to be recognized by.
    pub(crate) fn word(&self) -> u64 {
        // The time at which it began is in the other half.
        self.row().number() as u64
    }

    /// Whether nobody has ended it. A row is one login's, so it is enough that there is one.
    pub(crate) fn holds(&self) -> bool {
        self.lasts().is_some()
    }

    /// When it ends by itself as things are, in seconds since 1970. `None`: it was ended.
    pub(crate) fn lasts(&self) -> Option<u64> {
        let opened = self.keeper.opened();
        let row = opened.store.read().without_tracking().get(self.row)?;
        Some(opened.end(row.made.unix(), row.seen.unix()))
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Login({})", self.user)
    }
}

impl Keeper {
    /// Has `hear` told of sessions that may have ended, when that can be seen. It is called while others wait.
    pub(crate) fn tell(&self, hear: impl Fn(Option<&[RowId]>) + Send + Sync + 'static) {
        // There is one start.
        let _ = self.hearer.0.set(Box::new(hear));
    }

    /// Listens to what becomes of the rows.
    pub(super) fn listen(self: &Arc<Self>, store: &Store) {
        let own: Weak<Self> = Arc::downgrade(self);
        store.observe(move |changes| {
            let Some(keeper) = own.upgrade() else { return };
            if let (Some(hear), Some(opened)) = (keeper.hearer.0.get(), keeper.opened.get()) {
                let rows = opened.store.read().without_tracking().changed::<Row>(changes);
                if rows.is_none_or(|rows| !rows.is_empty()) {
                    hear(rows);
                }
            }
        });
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::super::Sessions;
    use super::super::badge::Badge;
    use super::*;
    use crate::store::Options;

    /// A login of Ann's, and what ends it.
    pub(crate) fn login() -> (Login, impl FnOnce()) {
        let store = Store::in_memory(Keeper::declare(Options::new())).unwrap();
        let keeper = Arc::new(Keeper::new(Sessions::new()));
        keeper.open_at(&store, None, Sessions::new(), 0).unwrap();
        let row = Row { user: Some("ann".into()), ..Row::new(&Badge::new(0)) };
        let row = store.change(move |change| change.insert(row.clone())).wait().unwrap();
        let login = Login::new(keeper, row, "ann".into(), u64::MAX);
        (login, move || assert!(store.change(move |change| change.remove(row)).wait().unwrap()))
    }
}
