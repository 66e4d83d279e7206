//! Tests of which certificate is presented and when a new one is due. An integration test covers
//! the protocol.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::self_signed::create_self_signed;

/// A folder of one test, removed afterwards.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bine-acme-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed remains in the temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A certificate and its key, valid from the beginning of this year to the end of the next.
pub(super) fn pem(hosts: &[String]) -> String {
    create_self_signed(hosts).unwrap()
}

fn choices(directory: &str) -> AcmeChoices {
    let directory = directory.to_owned();
    AcmeChoices { directory, roots: Some("roots.pem".into()), ..AcmeChoices::default() }
}

fn hosts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const DAY: u64 = 86400;
const HERE: &str = "https://ca.example/directory";

/// The only slot for these hosts, under a plan that is now current.
fn planned(acme: &Acme, folder: &Folder, directory: &str, names: &[&str]) -> Arc<Slot> {
    let plan = acme.plan(&choices(directory), &folder.0, vec![hosts(names)]);
    let (plan, mut slots) = plan.unwrap();
    // The plan is set without starting the thread.
    acme.work.order().plan = Some(Arc::new(plan));
    slots.remove(0)
}

#[test]
fn self_signed_certificate_serves_until_the_issued_one_which_survives_a_restart() {
    let folder = Folder::new();
    let acme = Acme::default();
    let slot = planned(&acme, &folder, HERE, &["a.example"]);
    let own = slot.certificate().fingerprint();
    assert!(slot.is_due(now()));
    let pem = pem(&hosts(&["a.example"]));
    let plan = acme.work.plan();
    slot.take(&plan.authority, &pem, now()).unwrap();
    let given = slot.certificate().fingerprint();
    assert_ne!(own, given);
    let later = planned(&Acme::default(), &folder, HERE, &["a.example"]);
    assert_eq!(later.certificate().fingerprint(), given);
    // The certificate is valid for two years from the first of January; a third remains in May of
    // the second.
    assert!(!later.is_due(Validity::of_pem(pem.as_bytes()).unwrap().from + 400 * DAY));
    assert!(later.is_due(Validity::of_pem(pem.as_bytes()).unwrap().from + 500 * DAY));
}

#[test]
fn reload_keeps_certificates_of_the_same_hosts_and_authority() {
    let folder = Folder::new();
    let acme = Acme::default();
    let slot = planned(&acme, &folder, HERE, &["a.example"]);
    assert!(Arc::ptr_eq(&slot, &planned(&acme, &folder, HERE, &["a.example"])));
    let more = planned(&acme, &folder, HERE, &["a.example", "b.example"]);
    assert!(!Arc::ptr_eq(&slot, &more));
    let there = planned(&acme, &folder, "https://other.example/", &["a.example", "b.example"]);
    assert!(!Arc::ptr_eq(&more, &there));
}

#[test]
fn failures_delay_the_next_attempt_and_reloads_do_not_wait() {
    let folder = Folder::new();
    let acme = Acme::default();
    let slot = planned(&acme, &folder, HERE, &["a.example"]);
    slot.fail("no reason", 1000, 0);
    assert_eq!(slot.wait(1000), Duration::from_mins(2));
    assert!(!slot.is_due(1119));
    assert!(slot.is_due(1120));
    slot.fail("no reason", 1120, 0);
    assert_eq!(slot.wait(1120), Duration::from_mins(4));
    acme.work.order().has_thread = true;
    let (plan, _) = acme.plan(&choices(HERE), &folder.0, vec![hosts(&["a.example"])]).unwrap();
    acme.pursue(Some(plan)).unwrap();
    assert!(slot.is_due(1121));
}

#[test]
fn invalid_certificate_changes_nothing() {
    let folder = Folder::new();
    let acme = Acme::default();
    let slot = planned(&acme, &folder, HERE, &["a.example"]);
    let own = slot.certificate().fingerprint();
    let reason = slot.take(&acme.work.plan().authority, "nothing", now()).unwrap_err();
    assert!(reason.contains("no BEGIN CERTIFICATE"), "{reason}");
    assert_eq!(slot.certificate().fingerprint(), own);
    assert!(slot.is_due(now()));
}

#[test]
fn expired_new_certificate_does_not_cause_repeated_orders() {
    let folder = Folder::new();
    let acme = Acme::default();
    let slot = planned(&acme, &folder, HERE, &["a.example"]);
    let long_after = now() + 1000 * DAY;
    slot.take(&acme.work.plan().authority, &pem(&hosts(&["a.example"])), long_after).unwrap();
    assert!(!slot.is_due(long_after + ORDER_INTERVAL - 1));
    assert_eq!(slot.wait(long_after), Duration::from_secs(ORDER_INTERVAL));
    assert!(slot.is_due(long_after + ORDER_INTERVAL));
}
