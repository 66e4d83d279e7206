//! Decides how the program's tables and channels reach its handlers.

use super::{Argument, Arguments, Needs, Rejection};
use crate::channels::Channels;
use crate::store::{Recorder, Store};

/// The tables that were given to [`App::table`](crate::App::table).
impl Argument for Store {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let store = request.tables.opened();
        // A live page may read the tables on any thread.
        let recorded = |store: &Store| match Recorder::current() {
            Some(recorder) => store.told_to(&recorder),
            None => store.clone(),
        };
        let store = store.map(recorded);
        store.ok_or_else(|| Rejection::bad(name, "are the tables of a program that has none"))
    }

    fn needs(needs: &mut Needs) {
        needs.tables = true;
    }
}

/// The channels of a program that [has some](crate::App::channels).
impl Argument for Channels {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let channels = request.channels.cloned();
        channels.ok_or_else(|| Rejection::bad(name, "are the channels of a program that has none"))
    }

    fn needs(needs: &mut Needs) {
        needs.channels = true;
    }
}
