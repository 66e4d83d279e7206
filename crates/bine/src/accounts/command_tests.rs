//! Tests of the commands of `bine user`, and of accounts that the configuration declares.

use std::sync::{Arc, Weak};

use super::account_row::AccountRow;
use super::choices::DeclaredAccount;
use super::commands::RunningAccounts;
use super::directory::AccountDirectory;
use super::password_hash::{HashMemory, HashingCost, hash};
use super::settings::AccountSettings;
use super::trusted_hosts::TrustedHosts;
use crate::audit::{self, AuditEntry};
use crate::sessions::{SessionStore, Sessions};
use crate::store::{Options, Store};
use crate::subsystem::Running;

const CHEAP: HashingCost = HashingCost::new(8, 1);

fn open(declared: &[DeclaredAccount], store: &Store) -> Arc<AccountDirectory> {
    let settings = AccountSettings { cost: CHEAP, ..AccountSettings::default() };
    let directory = Arc::new(AccountDirectory::new(settings));
    let sessions = Arc::new(SessionStore::new(Sessions::new()));
    sessions.open(store, None, None, None).unwrap();
    directory.open(store, sessions, Weak::new(), TrustedHosts::None, declared).unwrap();
    directory
}

fn store() -> Store {
    let options = SessionStore::declare(audit::declare(Options::new()));
    Store::in_memory(options.table::<AccountRow>()).unwrap()
}

#[track_caller]
fn run(running: &RunningAccounts, words: &[&str]) -> Result<String, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    running.command(&words).expect("it is a command of accounts")
}

#[test]
fn console_adds_lists_blocks_and_removes_users() {
    let store = store();
    let running = RunningAccounts(Some(open(&[], &store)));
    let add = ["user", "add", "Ann", "--email", "ann@example.org", "hop vines in May"];
    assert_eq!(run(&running, &add), Ok("added Ann\n".to_owned()));
    assert_eq!(run(&running, &add), Err("there is a user Ann already".to_owned()));
    assert!(run(&running, &["user", "add", "Bob", "password"]).unwrap_err().contains("attackers"));
    run(&running, &["user", "block", "ann"]).unwrap();
    assert_eq!(run(&running, &["user", "list"]), Ok("Ann\tann@example.org blocked\n".to_owned()));
    run(&running, &["user", "unblock", "ann"]).unwrap();
    run(&running, &["user", "password", "ann", "another good phrase"]).unwrap();
    run(&running, &["user", "remove", "ANN"]).unwrap();
    assert_eq!(run(&running, &["user", "list"]), Ok(String::new()));
    assert!(run(&running, &["user", "remove", "Ann"]).unwrap_err().contains("no user Ann"));
    let actions: Vec<String> =
        store.read().all::<AuditEntry>().map(|entry| entry.action.to_string()).collect();
    let expected = [
        "account creation",
        "account block",
        "account unblock",
        "password change",
        "account removal",
    ];
    assert_eq!(actions, expected);
    assert!(store.read().all::<AuditEntry>().all(|entry| &*entry.actor == "console"));
}

#[test]
fn other_commands_are_left_to_other_subsystems() {
    for accounts in [None, Some(open(&[], &store()))] {
        let running = RunningAccounts(accounts);
        for words in [&["user", "grant", "Ann"][..], &["reload"], &["user"], &[]] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(running.command(&words), None);
        }
    }
    let missing = run(&RunningAccounts(None), &["user", "list"]).unwrap_err();
    assert!(missing.contains("add `.accounts(..)`"), "{missing}");
}

#[test]
fn configuration_declares_changes_and_removes_accounts() {
    let store = store();
    let declared = |name: &str, password: &str| DeclaredAccount {
        name: name.into(),
        hash: hash(password, CHEAP, &mut HashMemory::default()).into(),
    };
    let (ann, bob) = (declared("Ann", "one"), declared("Bob", "two"));
    open(&[ann.clone(), bob], &store);
    let row = AccountRow::find(&store.read(), "ann").unwrap();
    assert!(row.is_declared && row.hash == ann.hash);
    let ann = declared("Ann", "three");
    let running = RunningAccounts(Some(open(std::slice::from_ref(&ann), &store)));
    assert_eq!(AccountRow::find(&store.read(), "Ann").unwrap().hash, ann.hash);
    assert!(AccountRow::find(&store.read(), "Bob").is_none());
    let error = run(&running, &["user", "password", "Ann", "another good phrase"]).unwrap_err();
    assert!(error.contains("the configuration declares Ann"), "{error}");
}
