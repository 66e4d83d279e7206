//! The rights of a running program: the rules and memberships in memory, which follow the stored
//! rows, and the decisions of the guard.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use bine_http::Method;
use bine_log as log;
use bine_server::Incoming;

use super::declared;
use super::rights_table::{MAX_RULES, Membership, RightsTable, RuleSource};
use super::rows::{self, MembershipRow, RightRow};
use super::rule::RightRule;
use super::who::{Right, Who};
use crate::access_guard::{AccessDecision, AccessGuard, ChannelUse, DeclaredRules};
use crate::request_session::{SessionProvider, look_at_user};
use crate::signal_core::SignalCore;
use crate::store::{Changes, Id, RowId, Store, Table};
use crate::subsystem::Shared;
use crate::trace;
use crate::user_name::NameComparison;

/// The rights of a program.
pub(crate) struct RightsEngine {
    /// A check holds the lock for less than a microsecond, and so does a change of one row.
    table: RwLock<RightsTable>,
    /// Changes with the rules and memberships, so that live pages follow them.
    changed: Arc<SignalCore>,
    /// Changes with the rules and memberships of the configuration alone.
    configured: Arc<SignalCore>,
    /// Counts the changes.
    version: AtomicU64,
    store: OnceLock<Store>,
    /// A weak reference: the engine is part of what it refers to.
    shared: OnceLock<Weak<Shared>>,
    /// The page where users log in.
    log_in_page: OnceLock<Cow<'static, str>>,
}

/// The page where users log in, in programs with accounts.
const LOG_IN: &str = "/log-in";

impl RightsEngine {
    /// Creates the engine of a program with these rules.
    pub(super) fn new(program: RuleSource, log_in_page: Option<Cow<'static, str>>) -> Self {
        let own = Self {
            table: RwLock::new(RightsTable::new(program)),
            changed: Arc::new(SignalCore::new()),
            configured: Arc::new(SignalCore::new()),
            version: AtomicU64::new(1),
            store: OnceLock::new(),
            shared: OnceLock::new(),
            log_in_page: OnceLock::new(),
        };
        // Health checks stay open.
        let mut open: Vec<Cow<'static, str>> = vec!["/health".into(), "/ready".into()];
        if let Some(path) = log_in_page {
            open.push(path.clone());
            // The cell is new.
            let _ = own.log_in_page.set(path);
        }
        own.keep_open(open);
        own
    }

    /// Replaces the rules and memberships of the configuration.
    pub(super) fn configure(&self, configured: RuleSource, index_names: Vec<String>) {
        self.table_mut().configure(configured, index_names);
        self.configured.notify();
        self.notify();
    }

    /// Reads the stored rows and follows their changes.
    ///
    /// # Errors
    ///
    /// The store cannot write rows with a different spelling.
    pub(super) fn follow(self: &Arc<Self>, store: &Store) -> Result<(), String> {
        let names = self.names();
        if names != NameComparison::Exact {
            let renamed = store.change(|change| rows::rename_users(change, names)).wait();
            renamed.map_err(|error| format!("the stored rights: {error}"))?;
        }
        // The program starts once, so the cell is empty.
        let _ = self.store.set(store.clone());
        let own = Arc::downgrade(self);
        let seen = store.clone();
        store.observe(move |changes| {
            if let Some(own) = own.upgrade() {
                own.apply(&seen, changes);
            }
        });
        self.read_all(store);
        Ok(())
    }

    /// Connects it to the other subsystems, which learn of changes.
    pub(super) fn start(&self, shared: &Arc<Shared>) {
        // The program starts once, so the cell is empty.
        let _ = self.shared.set(Arc::downgrade(shared));
    }

    /// The store; `None`: it is not open yet.
    pub(super) fn store(&self) -> Option<&Store> {
        self.store.get()
    }

    /// How the names of users are compared.
    pub(super) fn names(&self) -> NameComparison {
        // Set before the program starts, so a live page does not depend on it.
        self.table.read().unwrap_or_else(PoisonError::into_inner).names()
    }

    /// The parts that subsystems share; `None`: the program has not started or has ended.
    pub(super) fn shared(&self) -> Option<Arc<Shared>> {
        self.shared.get()?.upgrade()
    }

    /// The rules and memberships. A live page that calls this depends on them.
    pub(super) fn table(&self) -> RwLockReadGuard<'_, RightsTable> {
        if let Some(trace) = trace::current() {
            // The version must be recorded before the rules are read.
            trace.record_signal(&self.changed);
        }
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Selects from the memberships of the program and the configuration. A live page that calls this
    /// does not depend on the stored ones.
    pub(super) fn fixed_members<T>(&self, select: impl Fn(&Membership) -> Option<T>) -> Vec<T> {
        if let Some(trace) = trace::current() {
            // The version must be recorded before the memberships are read.
            trace.record_signal(&self.configured);
        }
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.fixed_members().filter_map(select).collect()
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, RightsTable> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the changes of a commit, before the commit is acknowledged.
    fn apply(&self, store: &Store, changes: &Changes) {
        let snapshot = store.read().without_tracking();
        let rules = snapshot.changed::<RightRow>(changes);
        let members = snapshot.changed::<MembershipRow>(changes);
        let (Some(rules), Some(members)) = (rules, members) else {
            self.read_all(store);
            return self.notify();
        };
        if rules.is_empty() && members.is_empty() {
            return;
        }
        let rules: Vec<_> = rules.iter().map(|row| (*row, rule_of(&snapshot, *row))).collect();
        let member = |row: &RowId| snapshot.get::<MembershipRow>(id_of(*row));
        let members: Vec<_> =
            members.iter().map(|row| (*row, member(row).map(|found| found.membership()))).collect();
        let mut table = self.table_mut();
        for (row, rule) in rules {
            table.set_stored_rule(row, rule);
        }
        for (row, member) in members {
            table.set_stored_member(row, member);
        }
        drop(table);
        self.notify();
    }

    /// Replaces all stored rules and memberships.
    fn read_all(&self, store: &Store) {
        let snapshot = store.read().without_tracking();
        let mut table = self.table_mut();
        let (rules, members) = table.stored_rows();
        for row in rules {
            table.set_stored_rule(row, None);
        }
        for row in members {
            table.set_stored_member(row, None);
        }
        for row in snapshot.all::<RightRow>().take(MAX_RULES) {
            match row.rule() {
                Some(rule) => table.set_stored_rule(row.id(), Some(rule)),
                None => log::error(format_args!(
                    "the stored rule `{} {} {}` is invalid and has no effect",
                    row.pattern, row.right, row.who
                )),
            }
        }
        for row in snapshot.all::<MembershipRow>() {
            table.set_stored_member(row.id(), Some(row.membership()));
        }
    }

    /// Makes open pages and suspended responses check their rights again.
    fn notify(&self) {
        self.version.fetch_add(1, Ordering::Release);
        self.changed.notify();
        if let Some(shared) = self.shared() {
            shared.running.iter().for_each(|running| running.change_rights());
        }
    }
}

/// The rule of a stored row.
fn rule_of(snapshot: &crate::store::Snapshot, row: RowId) -> Option<RightRule> {
    snapshot.get::<RightRow>(id_of(row))?.rule()
}

impl AccessGuard for RightsEngine {
    fn check(
        &self,
        path: &str,
        request: &Incoming<'_>,
        sessions: Option<&Arc<dyn SessionProvider>>,
    ) -> AccessDecision {
        let right = right_of(request.head.method());
        let is_allowed = |user| {
            let table = self.table();
            table.decide_path(path, right, table.client(user)).is_allowed
        };
        if is_allowed(None) {
            return AccessDecision::Allow;
        }
        let Some(user) = look_at_user(sessions, request) else {
            return AccessDecision::RequireLogin;
        };
        if is_allowed(Some(user)) { AccessDecision::AllowPrivately } else { AccessDecision::Deny }
    }

    fn allows(&self, user: Option<&str>, path: &str, method: Method) -> bool {
        let table = self.table();
        table.decide_path(path, right_of(method), table.client(user)).is_allowed
    }

    fn check_channel(&self, user: Option<&str>, usage: ChannelUse, channel: &str) -> Option<bool> {
        let table = self.table();
        let decision = table.decide_channel(channel, usage.into(), table.client(user));
        decision.entry.map(|_| decision.is_allowed)
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn may_use_some_channel(&self, user: Option<&str>, usage: ChannelUse) -> bool {
        let table = self.table();
        table.allows_some_channel(usage.into(), table.client(user))
    }

    fn is_member(&self, user: &str, group: &str) -> bool {
        self.table().is_member(user, group)
    }

    fn names_user(&self, user: &str) -> bool {
        self.table().names_user(user)
    }

    fn declare(&self, declared: &DeclaredRules) -> Result<(), String> {
        let source = declared::read(declared)?;
        self.table_mut().declare(source, declared.source);
        self.notify();
        Ok(())
    }

    fn compare_names(&self, names: NameComparison) {
        self.table_mut().compare_names(names);
    }

    fn keep_open(&self, paths: Vec<Cow<'static, str>>) {
        let mut table = self.table_mut();
        for path in paths {
            if path == LOG_IN {
                // A page that the program names takes precedence.
                let _ = self.log_in_page.set(path.clone());
            }
            match RightRule::new(&path, Right::Read, Who::Anonymous) {
                Ok(rule) => table.keep_open(&rule),
                Err(reason) => log::error(format_args!("a path that stays open: {reason}")),
            }
        }
    }

    fn log_in_page(&self) -> Option<&str> {
        self.log_in_page.get().map(|path| &**path)
    }
}

impl From<ChannelUse> for Right {
    fn from(usage: ChannelUse) -> Self {
        match usage {
            ChannelUse::Follow => Self::Follow,
            ChannelUse::Publish => Self::Publish,
            ChannelUse::Manage => Self::Manage,
        }
    }
}

/// The right that a request needs.
pub(super) const fn right_of(method: Method) -> Right {
    if method.is_safe() { Right::Read } else { Right::Write }
}

fn id_of<T: Table>(row: RowId) -> Id<T> {
    Id::of(row)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;
    use crate::store::Options;

    /// The decisions about some paths for some users.
    fn decisions(engine: &RightsEngine) -> Vec<bool> {
        let users = [None, Some("ann"), Some("ben")];
        let each = ["/", "/a", "/a/b", "/b"]
            .into_iter()
            .flat_map(|path| users.map(|user| engine.allows(user, path, Method::Get)));
        let channels =
            users.map(|user| engine.check_channel(user, ChannelUse::Follow, "a/b").unwrap_or(true));
        each.chain(channels).collect()
    }

    proptest! {
        /// The table in memory follows each commit before it is acknowledged, and equals the table
        /// of a restart.
        #[test]
        fn follows_stored_changes_as_a_restart_would(
            steps in vec((0_u8..4, 0_usize..4, 0_usize..4), 1..20),
        ) {
            let store = Store::in_memory(rows::declare(Options::new())).unwrap();
            let engine = Arc::new(RightsEngine::new(RuleSource::default(), None));
            engine.follow(&store).unwrap();
            let subjects = [Who::Anonymous, Who::Users, Who::group("g"), Who::user("ann")];
            for (kind, pattern, subject) in steps {
                let pattern = ["/", "/*", "/a/{x}", "a/*"][pattern];
                let right = if pattern.starts_with('/') { Right::Read } else { Right::Follow };
                let rule = RightRule::new(pattern, right, subjects[subject].clone()).unwrap();
                let user = ["ann", "ben"][subject % 2];
                let member = Membership::new(user, ["g", "h"][subject / 2]).unwrap();
                let change = store.change(|change| match kind {
                    0 => rows::grant(change, "root", &rule),
                    1 => rows::revoke(change, "root", &rule),
                    2 => rows::add_member(change, "root", &member),
                    _ => rows::remove_member(change, "root", &member),
                });
                let has_changed: Result<bool, Error> = change.wait();
                if has_changed.unwrap() && kind == 0 {
                    prop_assert!(engine.table().rules().iter().any(|(own, _)| **own == rule));
                }
                let fresh = Arc::new(RightsEngine::new(RuleSource::default(), None));
                fresh.follow(&store).unwrap();
                prop_assert_eq!(decisions(&engine), decisions(&fresh));
            }
        }
    }
}
