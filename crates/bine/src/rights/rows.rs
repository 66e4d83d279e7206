//! Stored rules and group memberships, which commands and the program change while it runs.

use bine_macros::Table;

use super::rights_table::{MAX_GROUPS, MAX_RULES, Membership};
use super::rule::RightRule;
use super::who::{Right, Who};
use crate::audit;
use crate::error::Error;
use crate::store::{self, Id, Options, Transaction};
use crate::text::Text;
use crate::user_name::NameComparison;

/// A stored rule.
#[derive(Clone, PartialEq, Eq, Debug, Table)]
#[table(crate = crate, name = "right_rule", unique(pattern, right, who))]
pub(super) struct RightRow {
    pub(super) id: Id<RightRow>,
    #[table(private, length = 1..=1000)]
    pub(super) pattern: Text,
    #[table(private, length = 1..=20)]
    pub(super) right: Text,
    /// As [`Who`] is displayed.
    #[table(index, private, length = 1..=210)]
    pub(super) who: Text,
}

/// A user in a group.
#[derive(Clone, PartialEq, Eq, Debug, Table)]
#[table(crate = crate, name = "right_member", unique(user, group))]
pub(super) struct MembershipRow {
    pub(super) id: Id<MembershipRow>,
    #[table(index, private, length = 1..=200)]
    pub(super) user: Text,
    #[table(index, private, length = 1..=200)]
    pub(super) group: Text,
}

/// Adds the tables.
pub(super) fn declare(options: Options) -> Options {
    audit::declare(options.table::<RightRow>().table::<MembershipRow>())
}

impl RightRow {
    /// The rule; `None`: an earlier version of the program wrote a row that is invalid now.
    pub(super) fn rule(&self) -> Option<RightRule> {
        let right = Right::parse(&self.right).ok()?;
        RightRule::new(&self.pattern, right, Who::parse(&self.who).ok()?).ok()
    }

    fn find(change: &Transaction, rule: &RightRule) -> Option<Self> {
        let key = (
            Text::from(rule.pattern.as_str()),
            Text::from(rule.right.name()),
            Text::from(rule.who.to_string()),
        );
        change.one(Self::BY_PATTERN_RIGHT_WHO, key)
    }
}

impl MembershipRow {
    pub(super) fn membership(&self) -> Membership {
        Membership { user: self.user.clone(), group: self.group.clone() }
    }

    fn find(change: &Transaction, member: &Membership) -> Option<Self> {
        change.one(Self::BY_USER_GROUP, (member.user.clone(), member.group.clone()))
    }
}

/// Stores the names of users in the form by which the program compares them: it may have compared
/// them letter by letter when it stored the rows.
///
/// # Errors
///
/// The store rejects the change.
pub(super) fn rename_users(
    change: &mut Transaction,
    names: NameComparison,
) -> Result<(), store::Error> {
    for row in change.all::<RightRow>().collect::<Vec<_>>() {
        let Some(rule) = row.rule() else { continue };
        let Ok(stored) = rule.stored(names) else { continue };
        let is_stored = RightRow::find(change, &stored).is_some();
        if stored.who != rule.who && is_stored {
            change.remove(row.id)?;
        } else if stored.who != rule.who {
            change.replace(&RightRow { who: stored.who.to_string().into(), ..row })?;
        }
    }
    for row in change.all::<MembershipRow>().collect::<Vec<_>>() {
        let Ok(stored) = row.membership().stored(names) else { continue };
        let is_stored = MembershipRow::find(change, &stored).is_some();
        if stored.user != row.user && is_stored {
            change.remove(row.id)?;
        } else if stored.user != row.user {
            change.replace(&MembershipRow { user: stored.user, ..row })?;
        }
    }
    Ok(())
}

/// Stores a rule. Returns false if it is stored already.
///
/// # Errors
///
/// There are too many rules.
pub(super) fn grant(
    change: &mut Transaction,
    actor: &str,
    rule: &RightRule,
) -> Result<bool, Error> {
    if RightRow::find(change, rule).is_some() {
        return Ok(false);
    }
    if change.untracked().count::<RightRow>() >= MAX_RULES {
        return Err(Error::conflict(format!(
            "there are {MAX_RULES} rules, the most; give rights to groups"
        )));
    }
    change.insert(RightRow {
        id: Id::unassigned(),
        pattern: rule.pattern.as_str().into(),
        right: rule.right.name().into(),
        who: rule.who.to_string().into(),
    })?;
    audit::record(change, actor, "right grant", rule.pattern.as_str(), &rule.to_string())?;
    Ok(true)
}

/// Removes a stored rule. Returns false if it is not stored.
///
/// # Errors
///
/// The store rejects the change.
pub(super) fn revoke(
    change: &mut Transaction,
    actor: &str,
    rule: &RightRule,
) -> Result<bool, Error> {
    let Some(row) = RightRow::find(change, rule) else { return Ok(false) };
    change.remove(row.id)?;
    audit::record(change, actor, "right revoke", rule.pattern.as_str(), &rule.to_string())?;
    Ok(true)
}

/// Stores a membership. Returns false if it is stored already.
///
/// # Errors
///
/// The user is in too many groups.
pub(super) fn add_member(
    change: &mut Transaction,
    actor: &str,
    member: &Membership,
) -> Result<bool, Error> {
    if MembershipRow::find(change, member).is_some() {
        return Ok(false);
    }
    if change.find(MembershipRow::BY_USER, member.user.clone()).count() >= MAX_GROUPS {
        return Err(Error::conflict(format!(
            "{} is in {MAX_GROUPS} groups, the most",
            member.user
        )));
    }
    change.insert(MembershipRow {
        id: Id::unassigned(),
        user: member.user.clone(),
        group: member.group.clone(),
    })?;
    audit::record(change, actor, "group add", &member.user, &member.group)?;
    Ok(true)
}

/// Removes a stored membership. Returns false if it is not stored.
///
/// # Errors
///
/// The store rejects the change.
pub(super) fn remove_member(
    change: &mut Transaction,
    actor: &str,
    member: &Membership,
) -> Result<bool, Error> {
    let Some(row) = MembershipRow::find(change, member) else { return Ok(false) };
    change.remove(row.id)?;
    audit::record(change, actor, "group remove", &member.user, &member.group)?;
    Ok(true)
}

/// Removes the stored rights and groups of a user. Returns how many there were.
///
/// # Errors
///
/// The store rejects the change.
pub(super) fn forget_user(
    change: &mut Transaction,
    actor: &str,
    user: &str,
) -> Result<usize, store::Error> {
    let who = Text::from(Who::user(user).to_string());
    let rules: Vec<RightRow> = change.find(RightRow::BY_WHO, who).collect();
    let members: Vec<MembershipRow> =
        change.find(MembershipRow::BY_USER, Text::from(user)).collect();
    for row in &rules {
        change.remove(row.id)?;
        let rule = format!("{} {} {}", row.pattern, row.right, row.who);
        audit::record(change, actor, "right revoke", &row.pattern, &rule)?;
    }
    for row in &members {
        change.remove(row.id)?;
        audit::record(change, actor, "group remove", &row.user, &row.group)?;
    }
    Ok(rules.len() + members.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::AuditEntry;
    use crate::store::Store;

    fn rule(line: &str) -> RightRule {
        RightRule::parse_line(line).unwrap().remove(0)
    }

    #[test]
    fn records_each_change_once_with_its_actor() {
        let store = Store::in_memory(declare(Options::new())).unwrap();
        let (own, member) = (rule("/a/* write ann"), Membership::new("ann", "editors").unwrap());
        let changed = store.change(|change| {
            Ok::<_, Error>([
                grant(change, "root", &own)?,
                grant(change, "root", &own)?,
                add_member(change, "root", &member)?,
                add_member(change, "root", &member)?,
                revoke(change, "console", &own)?,
                revoke(change, "console", &own)?,
                remove_member(change, "console", &member)?,
                remove_member(change, "console", &member)?,
            ])
        });
        let expected = [true, false, true, false, true, false, true, false];
        assert_eq!(changed.wait().unwrap(), expected);
        let snapshot = store.read();
        let entries = snapshot.all::<AuditEntry>();
        let entries = entries.map(|entry| {
            format!("{} {} {}: {}", entry.actor, entry.action, entry.object, entry.detail)
        });
        assert_eq!(
            entries.collect::<Vec<_>>(),
            [
                "root right grant /a/*: /a/* write ann",
                "root group add ann: editors",
                "console right revoke /a/*: /a/* write ann",
                "console group remove ann: editors",
            ]
        );
    }

    #[test]
    fn forgets_the_rights_and_groups_of_one_user() {
        let store = Store::in_memory(declare(Options::new())).unwrap();
        let rules =
            ["/a read ann", "/b write ann", "news follow ann", "/a read ben", "/a read users"];
        let changed = store.change(|change| {
            for line in rules {
                grant(change, "root", &rule(line))?;
            }
            for user in ["ann", "ben"] {
                add_member(change, "root", &Membership::new(user, "editors").unwrap())?;
            }
            Ok::<_, Error>(forget_user(change, "root", "ann")?)
        });
        assert_eq!(changed.wait().unwrap(), 4);
        let snapshot = store.read();
        let mut left: Vec<_> = snapshot.all::<RightRow>().map(|row| row.who.to_string()).collect();
        left.extend(snapshot.all::<MembershipRow>().map(|row| row.user.to_string()));
        left.sort_unstable();
        assert_eq!(left, ["ben", "ben", "users"]);
    }

    #[test]
    fn rejects_more_groups_than_a_user_may_have() {
        let store = Store::in_memory(declare(Options::new())).unwrap();
        let add = |number: usize| {
            let member = Membership::new("ann", &format!("g{number}")).unwrap();
            store.change(|change| add_member(change, "root", &member)).wait()
        };
        (0..MAX_GROUPS).for_each(|number| assert!(add(number).unwrap()));
        let error = add(MAX_GROUPS).unwrap_err();
        assert_eq!(error.message(), Some("ann is in 64 groups, the most"));
    }

    #[test]
    fn renames_users_when_accounts_begin_to_compare_names() {
        let store = Store::in_memory(declare(Options::new())).unwrap();
        let changed = store.change(|change| {
            for line in ["/a read Ann", "/a read ann", "/b read Ben", "/c read group:G"] {
                grant(change, "root", &rule(line))?;
            }
            for (user, group) in [("Ann", "G"), ("ann", "G"), ("Ben", "G")] {
                add_member(change, "root", &Membership::new(user, group).unwrap())?;
            }
            Ok::<_, Error>(rename_users(change, NameComparison::Folded)?)
        });
        changed.wait().unwrap();
        let snapshot = store.read();
        let rules = snapshot.all::<RightRow>().map(|row| format!("{} {}", row.pattern, row.who));
        assert_eq!(rules.collect::<Vec<_>>(), ["/a ann", "/b ben", "/c group:G"]);
        let members = snapshot.all::<MembershipRow>().map(|row| row.user.to_string());
        assert_eq!(members.collect::<Vec<_>>(), ["ann", "ben"]);
    }
}
