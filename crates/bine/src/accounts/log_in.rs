//! Log-ins, and the check of the password before sensitive changes.

use std::sync::atomic::Ordering;

use bine_log as log;

use super::account_row::AccountRow;
use super::denial::Denial;
use super::password_hash::Verification;
use super::throttle::Subject;
use super::visit::Visit;
use crate::audit;
use crate::store::Error;
use crate::text::Text;
use crate::user_name::name_key;

/// More characters are no name and no password.
const MAX_INPUT: usize = 1024;
/// The numbers of failures in a row after which the audit log has an entry.
const BURSTS: [u32; 4] = [10, 100, 1000, 10_000];

/// The subjects of one try.
struct Tries<'t> {
    key: &'t str,
    subjects: Vec<Subject<'t>>,
}

impl<'t> Tries<'t> {
    /// A device on which the user has logged in counts by itself, so that tries from elsewhere do
    /// not delay it. So does an address block from which the user has logged in, except for its own
    /// tries.
    fn new(visit: &Visit, key: &'t str, row: Option<&AccountRow>) -> Self {
        let (block, now) = (visit.block, visit.now);
        let device = row.and_then(|row| visit.known_device(row.id.row()));
        let throttle = &visit.directory.throttle;
        let mut subjects = match device {
            Some(device) => vec![Subject::Device(key, device)],
            None => vec![Subject::AccountAt(key, block), Subject::Block(block)],
        };
        if device.is_none() && throttle.count(Subject::Success(key, block), now) == 0 {
            subjects.push(Subject::Account(key));
        }
        Self { key, subjects }
    }

    fn begin(&self, visit: &Visit) -> Result<(), Denial> {
        visit.attempt(&self.subjects)
    }

    /// The password was right.
    fn succeed(&self, visit: &Visit) {
        let throttle = &visit.directory.throttle;
        throttle.undo(&self.subjects, visit.now);
        throttle.clear(self.subjects[0], visit.now);
        throttle.note(Subject::Success(self.key, visit.block), visit.now);
    }

    /// No password was compared.
    fn cancel(&self, visit: &Visit) {
        visit.directory.throttle.undo(&self.subjects, visit.now);
    }
}

impl Visit {
    /// Logs a user in, who gives a name or a confirmed e-mail address. Returns the account.
    ///
    /// An unknown name costs as much as a known one: a hash is compared in each case, and the
    /// throttle counts the name that was given.
    pub(super) async fn log_in(
        &self,
        name: &str,
        password: &str,
        is_remembered: bool,
    ) -> Result<AccountRow, Denial> {
        self.refuse_tokens()?;
        let outcomes = &self.directory.outcomes;
        let row = self.authenticate(name.trim(), password).await;
        let counter = match &row {
            Ok(_) => &outcomes.succeeded,
            Err(Denial::Busy) => &outcomes.busy,
            Err(Denial::Wait(_)) => return row,
            Err(_) => &outcomes.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let row = row?;
        self.begin_session(&row, is_remembered).await?;
        Ok(row)
    }

    async fn authenticate(&self, name: &str, password: &str) -> Result<AccountRow, Denial> {
        if name.len() > MAX_INPUT || password.len() > MAX_INPUT {
            return Err(Denial::Wrong);
        }
        let (directory, key) = (&self.directory, name_key(name));
        let row = AccountRow::named(&directory.now(), name);
        let tries = Tries::new(self, &key, row.as_ref());
        tries.begin(self)?;
        let stored = row.as_ref().map(|row| &*row.hash).filter(|hash| !hash.is_empty());
        let stored = stored.unwrap_or_else(|| directory.decoy());
        let Verification { is_right, is_outdated } =
            match directory.pool().verify(self.block, password, stored).await {
                Ok(verification) => verification,
                Err(busy) => {
                    tries.cancel(self);
                    return Err(busy.into());
                }
            };
        let Some(row) = row.filter(|_| is_right) else {
            self.note_failure(name);
            return Err(Denial::Wrong);
        };
        tries.succeed(self);
        if row.is_blocked {
            return Err(Denial::Blocked);
        }
        if is_outdated && !row.is_declared {
            return Ok(self.rehash(row, password).await);
        }
        Ok(row)
    }

    /// Begins a session for this account, unless its password has changed since it was compared.
    pub(super) async fn begin_session(
        &self,
        row: &AccountRow,
        is_remembered: bool,
    ) -> Result<(), Denial> {
        if is_remembered {
            self.session.log_in(&row.name).await?;
        } else {
            self.session.log_in_briefly(&row.name).await?;
        }
        let is_current = |now: AccountRow| now.hash == row.hash && !now.is_blocked;
        if self.directory.now().get(row.id).is_some_and(is_current) {
            return Ok(());
        }
        self.session.log_out().await?;
        Err(Denial::Wrong)
    }

    /// Checks the password of the logged-in user before a sensitive change, and returns the
    /// account.
    pub(super) async fn verify_again(&self, password: &str) -> Result<AccountRow, Denial> {
        self.refuse_tokens()?;
        let row = self.account()?;
        let tries = Tries::new(self, &row.key, Some(&row));
        tries.begin(self)?;
        if password.len() > MAX_INPUT {
            return Err(Denial::WrongPassword);
        }
        match self.directory.pool().verify(self.block, password, &row.hash).await {
            Ok(Verification { is_right: true, .. }) => {
                tries.succeed(self);
                Ok(row)
            }
            Ok(_) => {
                self.note_failure(&row.name);
                Err(Denial::WrongPassword)
            }
            Err(busy) => {
                tries.cancel(self);
                Err(busy.into())
            }
        }
    }

    /// The account of the logged-in user.
    pub(super) fn account(&self) -> Result<AccountRow, Denial> {
        let user = self.session.user().ok_or(Denial::NeedsUser)?;
        AccountRow::find(&self.directory.now(), &user).ok_or(Denial::NeedsUser)
    }

    /// Hashes the password with today's cost. If that fails, the old hash stays.
    async fn rehash(&self, mut row: AccountRow, password: &str) -> AccountRow {
        let Ok(hash) = self.directory.pool().hash(self.block, password).await else { return row };
        let (id, old, new) = (row.id, row.hash.clone(), Text::from(hash));
        let stored = new.clone();
        let change = self.directory.store().change::<_, _, Error>(move |change| {
            let is_same = change.get(id).is_some_and(|row: AccountRow| row.hash == old);
            if is_same {
                change.update(id, |row: &mut AccountRow| row.hash = stored.clone())?;
            }
            Ok(is_same)
        });
        match change.await {
            Ok(true) => row.hash = new,
            Ok(false) => {}
            Err(error) => {
                log::warn(format_args!("a password was not hashed with the new cost: {error}"));
            }
        }
        row
    }

    /// Records a burst of failures in the audit log, if there is such an account.
    fn note_failure(&self, name: &str) {
        let (directory, key) = (&self.directory, name_key(name));
        let count = directory.throttle.count(Subject::Account(&key), self.now);
        if !BURSTS.contains(&count) {
            return;
        }
        let Some(row) = AccountRow::named(&directory.now(), name) else { return };
        let detail = format!("{count} failures in a row, the last from {}", self.block);
        let mut change = directory.store().begin();
        if audit::record(&mut change, "anonymous", "log-in failures", &row.name, &detail).is_ok()
            && let Ok(pending) = directory.store().commit(change)
        {
            // The response does not wait for it.
            tokio::spawn(async move { drop(pending.await) });
        }
    }
}
