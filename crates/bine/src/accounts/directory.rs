//! The accounts of a running program: their settings, and the parts that all operations share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bine_log as log;
use bine_server::{AddressBlock, timeout};

use super::account_row::AccountRow;
use super::choices::DeclaredAccount;
use super::hash_pool::HashPool;
use super::mail::Mail;
use super::password_rule;
use super::settings::AccountSettings;
use super::throttle::Throttle;
use super::trusted_hosts::TrustedHosts;
use crate::audit;
use crate::prometheus::PrometheusText;
use crate::sessions::keys::Keys;
use crate::sessions::{SessionStore, end_sessions};
use crate::store::{Error, Snapshot, Store, Time, Transaction};
use crate::subsystem::Shared;
use crate::text::Text;
use crate::user_name::name_key;
use crate::visitor_message::AccountMessage;

/// The accounts of a program.
pub(super) struct AccountDirectory {
    pub(super) settings: AccountSettings,
    /// Set at the start, before the first request.
    opened: OnceLock<OpenAccounts>,
    pub(super) throttle: Throttle,
    pub(super) outcomes: Outcomes,
    mails: AtomicUsize,
    notice: ThrottleNotice,
}

/// The parts that exist once the tables are open.
struct OpenAccounts {
    store: Store,
    sessions: Arc<SessionStore>,
    pool: HashPool,
    /// The hash for names that do not exist.
    decoy: String,
    shared: Weak<Shared>,
    /// The hosts of requests that may become hosts of links in mails.
    trusted: TrustedHosts,
}

/// The numbers of log-ins by outcome.
#[derive(Default)]
pub(super) struct Outcomes {
    pub(super) succeeded: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) throttled: AtomicU64,
    pub(super) busy: AtomicU64,
}

/// Logs throttled tries, at most one line a minute.
#[derive(Default)]
struct ThrottleNotice {
    /// The minute of the last line.
    minute: AtomicU64,
    /// Throttled tries since then.
    count: AtomicU64,
}

/// Mails that are sent at a time.
const MAX_MAILS: usize = 64;
/// The longest time for one mail.
const MAIL_TIMEOUT: Duration = Duration::from_secs(30);

impl AccountDirectory {
    pub(super) fn new(settings: AccountSettings) -> Self {
        Self {
            settings,
            opened: OnceLock::new(),
            throttle: Throttle::new(),
            outcomes: Outcomes::default(),
            mails: AtomicUsize::new(0),
            notice: ThrottleNotice::default(),
        }
    }

    /// Starts the hash threads and takes over the accounts that the configuration declares.
    ///
    /// # Errors
    ///
    /// A thread cannot be started, or the store cannot write.
    pub(super) fn open(
        self: &Arc<Self>,
        store: &Store,
        sessions: Arc<SessionStore>,
        shared: Weak<Shared>,
        trusted: TrustedHosts,
        declared: &[DeclaredAccount],
    ) -> Result<(), String> {
        let cost = self.settings.cost;
        let pool = HashPool::start(self.settings.threads, cost)
            .map_err(|error| format!("cannot start a thread for password hashes: {error}"))?;
        let decoy = super::password_hash::decoy(cost);
        let opened = OpenAccounts { store: store.clone(), sessions, pool, decoy, shared, trusted };
        // The program starts once, so the cell is empty.
        let _ = self.opened.set(opened);
        self.declare(declared)
            .map_err(|error| format!("cannot store the accounts of the configuration: {error:?}"))
    }

    /// Inserts, changes and removes rows so that the declared accounts are those of the
    /// configuration.
    fn declare(self: &Arc<Self>, declared: &[DeclaredAccount]) -> Result<(), crate::error::Error> {
        let (declared, own) = (declared.to_vec(), Arc::clone(self));
        let change = self.store().change::<_, _, crate::error::Error>(move |change| {
            let old: Vec<AccountRow> =
                change.all::<AccountRow>().filter(|row| row.is_declared).collect();
            for row in old {
                if !declared.iter().any(|one| name_key(&one.name) == row.key) {
                    own.remove(change, &row)?;
                    audit::record(change, "console", "account removal", &row.name, "not declared")?;
                }
            }
            for one in &declared {
                let now = Time::now();
                match AccountRow::find(change, &one.name) {
                    Some(row) if row.is_declared && *row.hash == *one.hash => {}
                    Some(mut row) => {
                        (row.hash, row.is_declared) = (one.hash.clone(), true);
                        row.password_changed = now;
                        change.replace(&row)?;
                        own.end_logins(change, &row.name)?;
                        audit::record(change, "console", "password change", &row.name, "declared")?;
                    }
                    None => {
                        let row = AccountRow::new(&one.name, one.hash.to_string(), now);
                        change.insert(AccountRow { is_declared: true, ..row })?;
                        audit::record(
                            change,
                            "console",
                            "account creation",
                            &one.name,
                            "declared",
                        )?;
                    }
                }
            }
            Ok(())
        });
        change.wait()
    }

    /// The store. Requests and commands run only once it is open.
    pub(super) fn store(&self) -> &Store {
        &self.opened().store
    }

    pub(super) fn pool(&self) -> &HashPool {
        &self.opened().pool
    }

    pub(super) fn decoy(&self) -> &str {
        &self.opened().decoy
    }

    /// The keys that sign links; `None`: the sessions are not open.
    pub(super) fn keys(&self) -> Option<&Keys> {
        self.opened.get()?.sessions.keys()
    }

    /// All tables as they are now, for code that is no part of a page.
    pub(super) fn now(&self) -> Snapshot {
        self.store().read().without_tracking()
    }

    fn opened(&self) -> &OpenAccounts {
        self.opened.get().expect("the accounts are open before the first request")
    }

    /// Checks a new password for an account.
    pub(super) fn check_password(
        &self,
        password: &str,
        name: &str,
        email: Option<&str>,
        host: Option<&str>,
    ) -> Result<(), AccountMessage> {
        let words = [Some(name), email, host].into_iter().flatten().collect::<Vec<_>>();
        password_rule::check(password, self.settings.minimum, &words)
    }

    /// Ends the sessions and credentials of a user as a part of a transaction.
    pub(super) fn end_logins(&self, change: &mut Transaction, name: &Text) -> Result<(), Error> {
        end_sessions(change, name, None)?;
        if let Some(shared) = self.opened().shared.upgrade() {
            for running in &shared.running {
                running.revoke_credentials(change, name)?;
            }
        }
        Ok(())
    }

    /// Removes an account as a part of a transaction, with all that other parts of the program
    /// store about its user.
    pub(super) fn remove(
        &self,
        change: &mut Transaction,
        row: &AccountRow,
    ) -> Result<(), crate::error::Error> {
        change.remove(row.id)?;
        end_sessions(change, &row.name, None)?;
        if let Some(shared) = self.opened().shared.upgrade() {
            for running in &shared.running {
                running.remove_user(change, &row.name)?;
            }
        }
        if let Some(hook) = &self.settings.on_removed {
            hook(change, &row.name)?;
        }
        Ok(())
    }

    /// Counts a try that must wait, and logs at most one line a minute about them.
    pub(super) fn note_throttled(&self, block: AddressBlock, now: u64) {
        self.outcomes.throttled.fetch_add(1, Ordering::Relaxed);
        if let Some(count) = self.notice.pass(now) {
            log::warn(format_args!(
                "log-ins, sign-ups or requests for mails are throttled: {count} since the last line, the newest from {block}"
            ));
        }
    }

    /// Whether the host of a request may become the host of a link in a mail.
    pub(super) fn trusts_host(&self, host: &str) -> bool {
        self.opened().trusted.contain(host)
    }

    /// Sends a mail in the background, so that the time of the response does not depend on it.
    pub(super) fn deliver(self: &Arc<Self>, mail: Mail) {
        let Some(send) = &self.settings.mail else { return };
        if self.mails.fetch_add(1, Ordering::AcqRel) >= MAX_MAILS {
            self.mails.fetch_sub(1, Ordering::AcqRel);
            log::error(format_args!(
                "a mail was not sent, because {MAX_MAILS} others are on their way"
            ));
            return;
        }
        let (sending, own) = (send(mail), Arc::clone(self));
        tokio::spawn(async move {
            let late = async || Err(crate::error::Error::unavailable("it took too long"));
            if let Err(error) = timeout(MAIL_TIMEOUT, sending, late).await {
                log::error(format_args!("a mail was not sent: {error:?}"));
            }
            own.mails.fetch_sub(1, Ordering::AcqRel);
        });
    }

    /// Writes the metrics.
    pub(super) fn write_metrics(&self, text: &mut PrometheusText) {
        let Some(opened) = self.opened.get() else { return };
        text.gauge("bine_accounts", "Accounts.").is(self.now().count::<AccountRow>());
        let Outcomes { succeeded, failed, throttled, busy } = &self.outcomes;
        let mut family = text.counter("bine_log_ins_total", "Log-ins by outcome.");
        for (name, count) in
            [("succeeded", succeeded), ("failed", failed), ("throttled", throttled), ("busy", busy)]
        {
            family.with(&[("outcome", name)], count.load(Ordering::Relaxed));
        }
        let figures = opened.pool.figures();
        text.counter("bine_password_hashes_total", "Password hashes.").is(figures.hashes);
        text.counter("bine_password_hash_seconds_total", "Time of password hashes.")
            .is(figures.seconds);
        text.counter(
            "bine_password_hashes_rejected_total",
            "Password hashes for which the queue was full or too slow.",
        )
        .is(figures.rejected);
        text.gauge("bine_password_hashes_waiting", "Password hashes that wait.")
            .is(figures.waiting);
    }

    /// Ends the hash threads.
    pub(super) fn close(&self) {
        if let Some(opened) = self.opened.get() {
            opened.pool.close();
        }
    }
}

impl ThrottleNotice {
    /// Counts a throttled try. Returns the number since the last line, if a line is due.
    fn pass(&self, now: u64) -> Option<u64> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let minute = now / 60;
        let before = self.minute.swap(minute, Ordering::Relaxed);
        if before == minute {
            return None;
        }
        self.count.store(0, Ordering::Relaxed);
        Some(count)
    }
}
