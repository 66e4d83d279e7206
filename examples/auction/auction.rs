//! Decides how a page reaches the tables: through a pause that stands for a database elsewhere.

use std::thread;

use bine::prelude::*;
use bine::store::{self, Snapshot, Transaction};
use bine::{Argument, Arguments, Needs, Rejection};
use ring::digest;

use crate::access::{self, Passes};
use crate::settings::Settings;
use crate::tables::User;

/// The tables of the house, for one page.
pub(crate) struct Auction {
    store: Store,
    house: State<House>,
}

/// What all pages share.
pub(crate) struct House {
    settings: Settings,
    passes: Passes,
}

impl House {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, passes: Passes::new() }
    }

    /// Blocks, as a question to a database does: that is why all pages of the house are plain functions.
    #[expect(clippy::disallowed_methods, reason = "what it stands for blocks its worker, too")]
    fn pause(&self) {
        if !self.settings.delay.is_zero() {
            thread::sleep(self.settings.delay);
        }
        for _ in 0..self.settings.hashes {
            std::hint::black_box(digest::digest(&digest::SHA256, &[0x5a; 1024]));
        }
    }
}

impl Auction {
    /// All tables at this moment.
    pub(crate) fn read(&self) -> Snapshot {
        self.house.pause();
        self.store.read()
    }

    /// # Errors
    ///
    /// Those of `action`, and of [`Store::change`].
    pub(crate) fn change<T>(
        &self,
        action: impl FnMut(&mut Transaction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.house.pause();
        self.store.change(action).wait()
    }

    /// The user of this name, if that is their password, with a pass for the form that comes next.
    ///
    /// # Errors
    ///
    /// There is no such user, or the password is another; which of the two is nobody's business.
    pub(crate) fn log_in(
        &self,
        now: &Snapshot,
        name: &str,
        password: &str,
    ) -> Result<(User, String), Error> {
        let user = now.one(User::BY_NAME, name).filter(|user| access::is_right(password, user));
        let user = user.ok_or_else(|| {
            Error::forbidden("there is no user of this name with this password; please try again")
        })?;
        let pass = self.house.passes.make(user.id);
        Ok((user, pass))
    }

    /// Whose pass it is.
    ///
    /// # Errors
    ///
    /// Nobody's, or nobody's any more.
    pub(crate) fn bearer(&self, pass: &str) -> Result<Id<User>, Error> {
        self.house.passes.read(pass)
    }

    /// Another pass for the same user.
    pub(crate) fn pass(&self, user: Id<User>) -> String {
        self.house.passes.make(user)
    }
}

impl Argument for Auction {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        Ok(Self { store: Store::take(request, name)?, house: State::take(request, name)? })
    }

    fn needs(needs: &mut Needs) {
        <Store as Argument>::needs(needs);
        State::<House>::needs(needs);
    }
}

/// The row of an address.
///
/// # Errors
///
/// There is none.
pub(crate) fn found<T: store::Table>(row: Option<T>, what: &str) -> Result<T, Error> {
    row.ok_or_else(|| Error::not_found(format!("there is no such {what}")))
}
