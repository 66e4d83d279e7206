//! The audit log: who changed users, rights and rows, and when. Subsystems record their changes in
//! it, within the same transaction.

use std::any::TypeId;

use bine_macros::Table;

use crate::store::{Error, Id, Options, Transaction};
use crate::text::Text;

/// An entry of the audit log. Its id holds its time.
#[derive(Clone, PartialEq, Eq, Debug, Table)]
#[table(crate = crate, name = "bine_audit")]
pub(crate) struct AuditEntry {
    pub(crate) id: Id<AuditEntry>,
    /// The user who made the change; `console` for a command on the server's machine, `anonymous`
    /// for a visitor without a login.
    #[table(index, private, length = 1..=200)]
    pub(crate) actor: Text,
    /// The kind of change, such as `row update` or `right grant`.
    #[table(private, length = 1..=60)]
    pub(crate) action: Text,
    /// The object that was changed, such as a user, a path, or a table with the id of a row.
    #[table(index, private, length = 0..=300)]
    pub(crate) object: Text,
    /// More about the change, for a reader. It never contains a secret.
    #[table(private, length = 0..=4000)]
    pub(crate) detail: Text,
}

/// Adds the table of the audit log to the store's options. Each subsystem that records changes
/// calls it.
pub(crate) fn declare(options: Options) -> Options {
    if options.has_table(TypeId::of::<AuditEntry>()) {
        return options;
    }
    options.table::<AuditEntry>()
}

/// The most entries. A user who fills the log displaces entries of their own, so that no user hides
/// the changes of other users by many changes.
const MAX_ENTRIES: usize = 1_000_000;

/// Records a change as a part of its transaction. Longer texts are cut to the lengths of their
/// columns.
///
/// # Errors
///
/// The table has too many rows.
pub(crate) fn record(
    change: &mut Transaction,
    actor: &str,
    action: &'static str,
    object: &str,
    detail: &str,
) -> Result<(), Error> {
    record_within(MAX_ENTRIES, change, actor, action, [object, detail])
}

/// Records a change in a log of at most `most` entries: in a full log, the oldest entry of the same
/// actor ends, or else the oldest of all.
fn record_within(
    most: usize,
    change: &mut Transaction,
    actor: &str,
    action: &'static str,
    [object, detail]: [&str; 2],
) -> Result<(), Error> {
    let cut = |text: &str, most: usize| Text::from(text.chars().take(most).collect::<String>());
    let actor = cut(actor, 200);
    if let Some(oldest) = displaced(most, change, &actor) {
        change.remove(oldest)?;
    }
    change.insert(AuditEntry {
        id: Id::unassigned(),
        actor,
        action: action.into(),
        object: cut(object, 300),
        detail: cut(detail, 4000),
    })?;
    Ok(())
}

/// The entry that a new one of this actor displaces, in a full log. The reads are untracked: a
/// transaction that depended on the size of the log would conflict with all other recording
/// transactions.
fn displaced(most: usize, change: &Transaction, actor: &Text) -> Option<Id<AuditEntry>> {
    let log = change.untracked();
    if log.count::<AuditEntry>() < most {
        return None;
    }
    let own = log.find(AuditEntry::BY_ACTOR, actor.clone()).next();
    own.or_else(|| log.all::<AuditEntry>().next()).map(|entry| entry.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn full_log_forgets_the_oldest_entry_of_the_actor_first() {
        let store = Store::in_memory(declare(Options::new())).unwrap();
        let texts = || -> Vec<String> {
            let snapshot = store.read();
            let entries = snapshot.all::<AuditEntry>();
            entries.map(|entry| format!("{} {}", entry.actor, entry.object)).collect()
        };
        for (actor, object) in
            [("ann", "1"), ("eve", "1"), ("eve", "2"), ("eve", "3"), ("eve", "4"), ("ben", "1")]
        {
            let write = |change: &mut Transaction| {
                record_within(3, change, actor, "row update", [object, ""])
            };
            store.change(write).wait().unwrap();
            assert!(texts().len() <= 3);
            if object == "4" {
                assert_eq!(texts(), ["ann 1", "eve 3", "eve 4"]);
            }
        }
        assert_eq!(texts(), ["eve 3", "eve 4", "ben 1"]);
    }

    /// Concurrent changes of different rows conflicted, since each read the size of the whole log:
    /// users got 409 for changes that no other user touched.
    #[test]
    fn concurrent_entries_do_not_conflict() {
        let store = Store::in_memory(declare(Options::new())).unwrap();
        for most in [MAX_ENTRIES, 2] {
            let changes = ["ann", "ben"].map(|actor| {
                let mut change = store.begin();
                record_within(most, &mut change, actor, "row update", ["note", ""]).unwrap();
                change
            });
            for change in changes {
                store.commit(change).unwrap().wait().unwrap();
            }
        }
    }

    #[test]
    fn records_changes_once_in_their_transaction() {
        let options = declare(declare(Options::new()));
        let store = Store::in_memory(options).unwrap();
        let long = "x".repeat(5000);
        let write = |change: &mut Transaction| record(change, "ann", "row update", "note 7", &long);
        store.change(write).wait().unwrap();
        let entries: Vec<AuditEntry> = store.read().all::<AuditEntry>().collect();
        let [entry] = &entries[..] else { panic!("{} entries", entries.len()) };
        assert_eq!((&*entry.actor, &*entry.object), ("ann", "note 7"));
        assert_eq!(entry.detail.len(), 4000);
    }
}
