//! Access to the tables, with a delay that simulates a remote database.

use std::thread;

use bine::prelude::*;
use bine::{FromRequest, Needs, Rejection, RequestParts};
use ring::digest;

use crate::access::{self, Passes};
use crate::database::{Snapshot, Store, Transaction};
use crate::settings::Settings;
use crate::tables::User;

/// The tables of the auction, for one page.
pub(crate) struct Auction {
    store: Store,
    house: State<House>,
}

/// The state shared by all pages.
pub(crate) struct House {
    settings: Settings,
    passes: Passes,
}

impl House {
    pub(crate) fn new(settings: Settings) -> Self {
        let passes = Passes::new(&settings.secret);
        Self { settings, passes }
    }

    /// Blocks, like a query to a remote database. For this reason all pages are plain functions.
    #[expect(clippy::disallowed_methods, reason = "the simulated database blocks its worker, too")]
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
    /// A snapshot of all tables.
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

    /// The user with this name and password, and a pass for the next form.
    ///
    /// # Errors
    ///
    /// The name or the password is wrong; the message does not reveal which.
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

    /// The user of a pass.
    ///
    /// # Errors
    ///
    /// The pass is not valid, or has expired.
    pub(crate) fn bearer(&self, pass: &str) -> Result<Id<User>, Error> {
        self.house.passes.read(pass)
    }

    /// A new pass for the same user.
    pub(crate) fn pass(&self, user: Id<User>) -> String {
        self.house.passes.make(user)
    }
}

impl FromRequest for Auction {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        Ok(Self {
            store: Store::from_request(request, name)?,
            house: State::from_request(request, name)?,
        })
    }

    fn needs(needs: &mut Needs) {
        <Store as FromRequest>::needs(needs);
        State::<House>::needs(needs);
    }
}

/// The row that an address names.
///
/// # Errors
///
/// There is no such row.
pub(crate) fn found<T: Table>(row: Option<T>, what: &str) -> Result<T, Error> {
    row.ok_or_else(|| Error::not_found(format!("there is no such {what}")))
}
