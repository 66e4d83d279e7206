//! Automatic certificates (ACME, RFC 8555): which certificates to order, the certificate to present
//! meanwhile, and renewal in time.
//!
//! One thread does this work; a server has it only if `tls = "acme"`. TLS handshakes read its
//! results.

mod authority;
mod call;
mod challenges;
mod schedule;
mod store;
mod subsystem;
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
use crate::self_signed::create_self_signed;
use authority::Authority;
use challenges::Challenges;
use store::CertificateStore;
use validity::Validity;

/// Orders and renews certificates.
#[derive(Default)]
struct Acme {
    challenges: Challenges,
    work: Arc<Renewals>,
}

/// The certificates to keep valid under one configuration.
struct Plan {
    authority: Authority,
    slots: Vec<Arc<Slot>>,
}

/// The current certificate for a set of hosts.
struct Slot {
    directory: String,
    hosts: Vec<String>,
    shown: RwLock<CurrentCertificate>,
    attempts: Mutex<Attempts>,
}

struct CurrentCertificate {
    certificate: Certificate,
    /// `None` if the certificate is only a substitute.
    validity: Option<Validity>,
}

#[derive(Clone, Copy, Default)]
struct Attempts {
    /// Failures in a row.
    failures: u32,
    /// The earliest time of the next attempt, in seconds since 1970.
    not_before: u64,
}

/// The assignment of the thread.
#[derive(Default)]
struct Renewals {
    order: Mutex<Order>,
    changed: Condvar,
}

#[derive(Default)]
struct Order {
    plan: Option<Arc<Plan>>,
    has_thread: bool,
}

/// The shortest time between two successful orders for the same hosts, in seconds.
const ORDER_INTERVAL: u64 = 60 * 60;

impl Acme {
    /// Plans a certificate for each of `hosts`, and returns the slots that hold them. A slot starts
    /// with the certificate in the data folder, or else with a self-signed one.
    ///
    /// # Errors
    ///
    /// Returns the missing setting and how to add it.
    fn plan(
        &self,
        choices: &AcmeChoices,
        data: &Path,
        hosts: Vec<Vec<String>>,
    ) -> Result<(Plan, Vec<Arc<Slot>>), String> {
        let roots = match &choices.roots {
            Some(path) => path.clone(),
            None => authority::default_roots()?,
        };
        let store = CertificateStore::in_data(data);
        let directory = &choices.directory;
        let before = self.work.order().plan.clone();
        let known = before.as_ref().map_or(&[][..], |plan| &plan.slots);
        let slot = |hosts: Vec<String>| {
            let is_same = |slot: &&Arc<Slot>| slot.hosts == hosts && slot.directory == *directory;
            match known.iter().find(is_same) {
                Some(slot) => Ok(Arc::clone(slot)),
                None => Slot::find(&store, directory, hosts).map(Arc::new),
            }
        };
        let slots: Vec<_> = hosts.into_iter().map(slot).collect::<Result<_, String>>()?;
        let email = choices.email.clone();
        let authority = Authority { directory: directory.clone(), email, roots, store };
        Ok((Plan { authority, slots: slots.clone() }, slots))
    }

    /// Replaces the previous plan and starts work on this one at once. Call it after the process
    /// has changed to its final user.
    ///
    /// # Errors
    ///
    /// The thread cannot be created.
    fn pursue(&self, plan: Option<Plan>) -> Result<(), String> {
        let mut order = self.work.order();
        if let Some(plan) = &plan {
            // After a reload the operator may have removed the cause of a failure.
            plan.slots.iter().for_each(|slot| *slot.attempts() = Attempts::default());
            if !order.has_thread {
                self.begin().map_err(|error| {
                    format!("cannot create the thread for certificates: {error}")
                })?;
                order.has_thread = true;
            }
        }
        order.plan = plan.map(Arc::new);
        self.work.changed.notify_all();
        Ok(())
    }

    fn begin(&self) -> std::io::Result<()> {
        // The runtime only has timers: calls to the authority block the thread.
        let runtime = runtime::Builder::new_current_thread().enable_time().build()?;
        let (work, challenges) = (Arc::clone(&self.work), self.challenges.clone());
        let random = || RandomState::new().build_hasher().finish();
        thread::Builder::new()
            .name("certificates".to_owned())
            .spawn(move || work.pursue(&runtime, &challenges, now, random))
            .map(drop)
    }
}

impl Renewals {
    /// Keeps the certificates valid; never returns. `now` returns the seconds since 1970.
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
                    // A panic while reading data from outside must not end all renewals.
                    let outcome = catch_unwind(AssertUnwindSafe(certify));
                    let outcome = outcome.unwrap_or_else(|_| Err("a panic".to_owned()));
                    let taken = outcome.and_then(|pem| slot.take(&plan.authority, &pem, now()));
                    if let Err(reason) = taken {
                        slot.fail(&reason, now(), random());
                    }
                }
            }
            let wait = plan.slots.iter().map(|slot| slot.wait(now())).min();
            self.await_change(&plan, wait.unwrap_or(schedule::CHECK_INTERVAL));
        }
    }

    /// The current plan; waits until there is one.
    fn plan(&self) -> Arc<Plan> {
        let mut order = self.order();
        loop {
            if let Some(plan) = &order.plan {
                return Arc::clone(plan);
            }
            order = self.changed.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until the plan changes, or `wait` is over.
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
    /// Creates the slot from the stored certificate for these hosts (at least one), or a
    /// self-signed one.
    fn find(store: &CertificateStore, directory: &str, hosts: Vec<String>) -> Result<Self, String> {
        let shown = match store.certificate(directory, &hosts) {
            Some(found) => {
                CurrentCertificate { certificate: found.certificate, validity: found.validity }
            }
            None => {
                let pem = create_self_signed(&hosts)?;
                let certificate = Certificate::from_pem(pem.as_bytes(), pem.as_bytes());
                let certificate = certificate.map_err(|error| error.to_string())?;
                CurrentCertificate { certificate, validity: None }
            }
        };
        let (shown, attempts) = (RwLock::new(shown), Mutex::default());
        Ok(Self { directory: directory.to_owned(), hosts, shown, attempts })
    }

    /// The certificate to present now.
    fn certificate(&self) -> Certificate {
        self.shown.read().unwrap_or_else(PoisonError::into_inner).certificate.clone()
    }

    /// Presents a certificate from the authority from now on, and stores it for restarts.
    fn take(&self, authority: &Authority, pem: &str, now: u64) -> Result<(), String> {
        let certificate = Certificate::from_pem(pem.as_bytes(), pem.as_bytes())
            .map_err(|error| format!("the authority sent an invalid certificate: {error}"))?;
        let validity = Validity::of_pem(pem.as_bytes())
            .ok_or("the new certificate has no readable validity")?;
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) =
            CurrentCertificate { certificate, validity: Some(validity) };
        *self.attempts() = Attempts { failures: 0, not_before: now + ORDER_INTERVAL };
        let until = Date::at(validity.until);
        log::notice(format_args!("{self}: new certificate, valid until {}", until.as_str()));
        if let Err(reason) = authority.store.keep_certificate(&self.directory, &self.hosts, pem) {
            // The certificate works all the same, and a second order would not help.
            log::error(format_args!(
                "{self}: cannot store the new certificate, so it will be lost at a restart: {reason}"
            ));
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
            "{self}: no new certificate: {reason}; next attempt in {minutes} minutes, or at a reload"
        ));
    }

    fn is_due(&self, now: u64) -> bool {
        self.good(now).is_none() && self.attempts().not_before <= now
    }

    /// The time until this slot needs attention.
    fn wait(&self, now: u64) -> Duration {
        match self.good(now) {
            Some(validity) => schedule::look(validity, now),
            None => Duration::from_secs(self.attempts().not_before.saturating_sub(now)),
        }
    }

    /// The validity of the certificate, unless a new one is due.
    fn good(&self, now: u64) -> Option<Validity> {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        shown.validity.filter(|validity| !schedule::is_due(*validity, now))
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Formats the hosts, for the log.
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
