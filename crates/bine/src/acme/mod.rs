//! Decides which certificates come from an authority by themselves (ACME, RFC 8555): which are asked for, what is shown
//! until they are there, and that they never run out.
//!
//! One thread does it, which a server has only if it is wanted. Handshakes read what it has brought.

mod authority;
mod call;
mod challenges;
mod schedule;
mod shelf;
mod validity;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bine_http::Date;
use bine_log as log;
use bine_server::tls::Certificate;
use tokio::runtime::{self, Runtime};

use crate::acme_choices::AcmeChoices;
use crate::self_signed::made_up;
use authority::Authority;
use challenges::Challenges;
use shelf::Shelf;
use validity::Validity;

/// Gets certificates, and has them anew in time.
#[derive(Default)]
pub(crate) struct Acme {
    challenges: Challenges,
    work: Arc<Work>,
}

/// What is to be done under one configuration.
pub(crate) struct Plan {
    authority: Authority,
    slots: Vec<Arc<Slot>>,
}

/// The certificate for some hosts, whichever it is just now.
pub(crate) struct Slot {
    directory: String,
    hosts: Vec<String>,
    shown: RwLock<Shown>,
    attempts: Mutex<Attempts>,
}

struct Shown {
    certificate: Certificate,
    /// `None`: it is not the wanted one.
    validity: Option<Validity>,
}

#[derive(Clone, Copy, Default)]
struct Attempts {
    /// In a row.
    failures: u32,
    /// None before this time, in seconds since 1970.
    not_before: u64,
}

/// What the thread is given to do.
#[derive(Default)]
struct Work {
    order: Mutex<Order>,
    changed: Condvar,
}

#[derive(Default)]
struct Order {
    plan: Option<Arc<Plan>>,
    has_thread: bool,
}

/// However soon a new certificate is due, its authority is not asked again before that.
const REST: u64 = 60 * 60;

impl Acme {
    /// What must be done to have a certificate for each of `hosts`, and where each is found. What there is already is
    /// taken from the data folder; where there is nothing, a certificate is made that nobody vouches for.
    ///
    /// # Errors
    ///
    /// What is missing, and how to mend it.
    pub(crate) fn plan(
        &self,
        choices: &AcmeChoices,
        data: &Path,
        hosts: Vec<Vec<String>>,
    ) -> Result<(Plan, Vec<Arc<Slot>>), String> {
        let roots = match &choices.roots {
            Some(path) => path.clone(),
            None => authority::usual_roots()?,
        };
        let shelf = Shelf::in_data(data);
        let directory = &choices.directory;
        let before = self.work.order().plan.clone();
        let known = before.as_ref().map_or(&[][..], |plan| &plan.slots);
        let slot = |hosts: Vec<String>| {
            let is_same = |slot: &&Arc<Slot>| slot.hosts == hosts && slot.directory == *directory;
            match known.iter().find(is_same) {
                Some(slot) => Ok(Arc::clone(slot)),
                None => Slot::find(&shelf, directory, hosts).map(Arc::new),
            }
        };
        let slots: Vec<_> = hosts.into_iter().map(slot).collect::<Result<_, String>>()?;
        let email = choices.email.clone();
        let authority = Authority { directory: directory.clone(), email, roots, shelf };
        Ok((Plan { authority, slots: slots.clone() }, slots))
    }

    /// Does this from now on in place of what was to be done before, and begins at once. Call it when this process is
    /// the user that it stays.
    ///
    /// # Errors
    ///
    /// There can be no thread.
    pub(crate) fn pursue(&self, plan: Option<Plan>) -> Result<(), String> {
        let mut order = self.work.order();
        if let Some(plan) = &plan {
            // Who has mended something need not wait.
            plan.slots.iter().for_each(|slot| *slot.attempts() = Attempts::default());
            if !order.has_thread {
                self.begin().map_err(|error| format!("no thread for certificates: {error}"))?;
                order.has_thread = true;
            }
        }
        order.plan = plan.map(Arc::new);
        self.work.changed.notify_all();
        Ok(())
    }

    /// The proof that a request for `target` asks for, if it comes from our authority.
    pub(crate) fn proof(&self, target: &str) -> Option<String> {
        self.challenges.proof(target)
    }

    fn begin(&self) -> std::io::Result<()> {
        // It has nothing but its timers: what it says to an authority it waits for where it stands.
        let runtime = runtime::Builder::new_current_thread().enable_time().build()?;
        let (work, challenges) = (Arc::clone(&self.work), self.challenges.clone());
        let random = || RandomState::new().build_hasher().finish();
        thread::Builder::new()
            .name("certificates".to_owned())
            .spawn(move || work.pursue(&runtime, &challenges, now, random))
            .map(drop)
    }
}

impl Work {
    /// Sees to the certificates for ever. `now` tells the seconds since 1970.
    fn pursue(
        &self,
        runtime: &Runtime,
        challenges: &Challenges,
        now: fn() -> u64,
        random: fn() -> u64,
    ) {
        loop {
            let plan = self.plan();
            for slot in &plan.slots {
                if slot.is_due(now()) {
                    let certify = || {
                        log::notice(format_args!(
                            "{slot}: asking {} for a certificate",
                            slot.directory
                        ));
                        runtime.block_on(plan.authority.certify(&slot.hosts, challenges))
                    };
                    // A defect in reading what comes from outside must not end all renewals.
                    let outcome = catch_unwind(AssertUnwindSafe(certify));
                    let outcome = outcome.unwrap_or_else(|_| Err("a panic".to_owned()));
                    let taken = outcome.and_then(|pem| slot.take(&plan.authority, &pem, now()));
                    if let Err(reason) = taken {
                        slot.fail(&reason, now(), random());
                    }
                }
            }
            let wait = plan.slots.iter().map(|slot| slot.wait(now())).min();
            self.await_change(&plan, wait.unwrap_or(schedule::LOOK));
        }
    }

    /// What is to be done, once there is something.
    fn plan(&self) -> Arc<Plan> {
        let mut order = self.order();
        loop {
            if let Some(plan) = &order.plan {
                return Arc::clone(plan);
            }
            order = self.changed.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Until something else is to be done, or `wait` is over.
    fn await_change(&self, plan: &Arc<Plan>, wait: Duration) {
        let is_same =
            |order: &mut Order| order.plan.as_ref().is_some_and(|own| Arc::ptr_eq(own, plan));
        drop(self.changed.wait_timeout_while(self.order(), wait, is_same));
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// What the shelf has for these hosts, at least one; else something of our own.
    fn find(shelf: &Shelf, directory: &str, hosts: Vec<String>) -> Result<Self, String> {
        let shown = match shelf.certificate(directory, &hosts) {
            Some(found) => Shown { certificate: found.certificate, validity: found.validity },
            None => {
                let pem = made_up(&hosts)?;
                let certificate = Certificate::from_pem(pem.as_bytes(), pem.as_bytes());
                let certificate = certificate.map_err(|error| error.to_string())?;
                Shown { certificate, validity: None }
            }
        };
        let (shown, attempts) = (RwLock::new(shown), Mutex::default());
        Ok(Self { directory: directory.to_owned(), hosts, shown, attempts })
    }

    /// The certificate to show just now.
    pub(crate) fn certificate(&self) -> Certificate {
        self.shown.read().unwrap_or_else(PoisonError::into_inner).certificate.clone()
    }

    /// Shows what an authority gave, from now on and behind a restart.
    fn take(&self, authority: &Authority, pem: &str, now: u64) -> Result<(), String> {
        let certificate = Certificate::from_pem(pem.as_bytes(), pem.as_bytes())
            .map_err(|error| format!("what came is no certificate: {error}"))?;
        let validity = Validity::of_pem(pem.as_bytes())
            .ok_or("it cannot be seen until when the new certificate is good")?;
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) =
            Shown { certificate, validity: Some(validity) };
        *self.attempts() = Attempts { failures: 0, not_before: now + REST };
        let until = Date::at(validity.until);
        log::notice(format_args!("{self}: a new certificate, good until {}", until.as_str()));
        if let Err(reason) = authority.shelf.keep_certificate(&self.directory, &self.hosts, pem) {
            // It is good all the same, and asking for another one would not help.
            log::error(format_args!("{self}: the new certificate ends with this server: {reason}"));
        }
        Ok(())
    }

    fn fail(&self, reason: &str, now: u64, random: u64) {
        let mut attempts = self.attempts();
        attempts.failures = attempts.failures.saturating_add(1);
        let pause = schedule::pause(attempts.failures, random);
        attempts.not_before = now + pause.as_secs();
        let minutes = pause.as_secs() / 60;
        log::error(format_args!(
            "{self}: no new certificate: {reason}; tried again in {minutes} minutes, or at a reload"
        ));
    }

    fn is_due(&self, now: u64) -> bool {
        self.good(now).is_none() && self.attempts().not_before <= now
    }

    /// How long nothing need be done about it.
    fn wait(&self, now: u64) -> Duration {
        match self.good(now) {
            Some(validity) => schedule::look(validity, now),
            None => Duration::from_secs(self.attempts().not_before.saturating_sub(now)),
        }
    }

    /// Unless another certificate is wanted.
    fn good(&self, now: u64) -> Option<Validity> {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        shown.validity.filter(|validity| !schedule::is_due(*validity, now))
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Its hosts, for the log.
impl std::fmt::Display for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.hosts.join(" "))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
