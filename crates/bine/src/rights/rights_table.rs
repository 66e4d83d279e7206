//! All rules and group memberships of a program in memory, united from the program, the
//! configuration and the stored rows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem::take;

use super::rule::RightRule;
use super::rule_tree::{Ending, NumberedSubject, RightHolder, RuleEntry, RuleTree};
use super::who::{ADMINISTRATORS, Right, USERS, Who};
use crate::store::RowId;
use crate::text::Text;
use crate::user_name::NameComparison;

/// The most rules of all sources.
pub(super) const MAX_RULES: usize = 100_000;
/// The most groups of one user.
pub(super) const MAX_GROUPS: usize = 64;
/// The paths of the framework's own files, streams and actions. Only rules that name this segment
/// decide about them.
const FRAMEWORK: &str = "_bine";

/// The rules and memberships in memory.
#[derive(Debug, Default)]
pub(super) struct RightsTable {
    paths: RuleTree,
    channels: RuleTree,
    /// The users with each right in any channel.
    some_channel: RuleEntry,
    /// The paths that stay open.
    open: RuleTree,
    group_numbers: GroupNumbers,
    users: NamedUsers,
    /// The files that a folder's path means.
    index_names: Vec<String>,
    program: RuleSource,
    configured: RuleSource,
    /// Of another subsystem.
    declared: RuleSource,
    /// The name of the source of `declared`.
    declared_by: &'static str,
    stored_rules: HashMap<RowId, RightRule>,
    stored_members: HashMap<RowId, Membership>,
}

/// The rules and memberships of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RuleSource {
    pub(super) rules: Vec<RightRule>,
    pub(super) members: Vec<Membership>,
}

/// A user in a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Membership {
    pub(super) user: Text,
    pub(super) group: Text,
}

/// The numbers of the groups' names.
#[derive(Debug, Default)]
struct GroupNumbers {
    by_name: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
}

/// The users that rules or memberships name.
#[derive(Debug, Default)]
struct NamedUsers {
    names: NameComparison,
    /// By the form by which names are compared.
    by_key: HashMap<Box<str>, NamedUser>,
    /// The number of the next new user. No number occurs twice.
    next: u64,
}

/// A user that a rule or a membership names.
#[derive(Debug)]
struct NamedUser {
    number: u64,
    /// How many rules name the user.
    rules: usize,
    /// The numbers of the groups. A group occurs once for each source.
    groups: Vec<u32>,
}

/// The decision about a path or a channel.
#[derive(Clone, Copy)]
pub(super) struct RightsDecision<'t> {
    /// The rules that decide; `None`: no rule matches.
    pub(super) entry: Option<&'t RuleEntry>,
    pub(super) is_allowed: bool,
}

impl RightsTable {
    /// Creates the table of a program.
    pub(super) fn new(program: RuleSource) -> Self {
        let mut own = Self::default();
        own.add_source(&program);
        own.program = program;
        own
    }

    /// Sets how the names of users are compared. No rows have been read yet.
    pub(super) fn compare_names(&mut self, names: NameComparison) {
        let (program, configured) = (take(&mut self.program), take(&mut self.configured));
        let declared = take(&mut self.declared);
        for source in [&program, &configured, &declared] {
            self.remove_source(source);
        }
        self.users.names = names;
        for source in [&program, &configured, &declared] {
            self.add_source(source);
        }
        (self.program, self.configured) = (program, configured);
        self.declared = declared;
    }

    /// The form in which this table's program stores the name of a user.
    pub(super) const fn names(&self) -> NameComparison {
        self.users.names
    }

    /// Replaces the rules and memberships of the configuration, and the names of index files.
    pub(super) fn configure(&mut self, configured: RuleSource, index_names: Vec<String>) {
        let before = take(&mut self.configured);
        self.remove_source(&before);
        self.add_source(&configured);
        self.configured = configured;
        self.index_names = index_names;
    }

    /// Replaces the rules and memberships that another subsystem declares, and the name of their
    /// source.
    pub(super) fn declare(&mut self, declared: RuleSource, by: &'static str) {
        let before = take(&mut self.declared);
        self.remove_source(&before);
        self.add_source(&declared);
        (self.declared, self.declared_by) = (declared, by);
    }

    /// Sets the stored rule of a row; `None`: the row does not exist any more.
    pub(super) fn set_stored_rule(&mut self, row: RowId, rule: Option<RightRule>) {
        if let Some(before) = self.stored_rules.remove(&row) {
            self.remove_rule(&before);
        }
        if let Some(rule) = rule {
            self.add_rule(&rule);
            self.stored_rules.insert(row, rule);
        }
    }

    /// Sets the stored membership of a row; `None`: the row does not exist any more.
    pub(super) fn set_stored_member(&mut self, row: RowId, member: Option<Membership>) {
        if let Some(before) = self.stored_members.remove(&row) {
            self.remove_member(&before);
        }
        if let Some(member) = member {
            self.add_member(&member);
            self.stored_members.insert(row, member);
        }
    }

    /// The rows of the stored rules and memberships.
    pub(super) fn stored_rows(&self) -> (Vec<RowId>, Vec<RowId>) {
        (self.stored_rules.keys().copied().collect(), self.stored_members.keys().copied().collect())
    }

    /// Keeps a path open unless a rule names exactly this path.
    pub(super) fn keep_open(&mut self, rule: &RightRule) {
        self.open.add(&rule.pattern, rule.right, NumberedSubject::Anonymous);
    }

    /// Decides whether a user may use a path. All spellings of a file are decided alike: each
    /// pattern that names a spelling has to allow it.
    pub(super) fn decide_path(
        &self,
        path: &str,
        right: Right,
        client: RightHolder<'_>,
    ) -> RightsDecision<'_> {
        let mut decision = RightsDecision { entry: None, is_allowed: true };
        self.each_entry(path, |entry| {
            let is_allowed = entry.allows(right, client);
            if decision.entry.is_none() || decision.is_allowed && !is_allowed {
                decision = RightsDecision { entry: Some(entry), is_allowed };
            }
        });
        decision
    }

    /// Decides whether a user may use a channel.
    pub(super) fn decide_channel(
        &self,
        channel: &str,
        right: Right,
        client: RightHolder<'_>,
    ) -> RightsDecision<'_> {
        let entry = self.channels.find(channel);
        RightsDecision { entry, is_allowed: entry.is_none_or(|entry| entry.allows(right, client)) }
    }

    /// Whether a rule gives a user this right in any channel.
    pub(super) fn allows_some_channel(&self, right: Right, client: RightHolder<'_>) -> bool {
        self.some_channel.allows(right, client)
    }

    /// The client that has logged in as this user.
    pub(super) fn client(&self, user: Option<&str>) -> RightHolder<'_> {
        let named = user.and_then(|user| self.users.find(user));
        RightHolder {
            is_user: user.is_some(),
            user: named.map(|named| named.number),
            groups: named.map_or(&[], |named| &named.groups),
        }
    }

    /// Whether this user is in this group.
    pub(super) fn is_member(&self, user: &str, group: &str) -> bool {
        let number = self.group_numbers.by_name.get(group);
        group == USERS
            || number.is_some_and(|number| self.client(Some(user)).groups.contains(number))
    }

    /// Whether a membership or a rule names this user.
    pub(super) fn names_user(&self, user: &str) -> bool {
        self.users.find(user).is_some()
    }

    /// The names of a user's groups, each once.
    pub(super) fn groups_of(&self, user: &str) -> Vec<&str> {
        let numbers = self.client(Some(user)).groups.iter();
        let mut names: Vec<&str> =
            numbers.map(|number| &*self.group_numbers.names[*number as usize]).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The memberships of the program and the configuration.
    pub(super) fn fixed_members(&self) -> impl Iterator<Item = &Membership> {
        self.program.members.iter().chain(&self.configured.members)
    }

    /// Whether a user is in this group.
    pub(super) fn has_members(&self, group: &str) -> bool {
        let number = self.group_numbers.by_name.get(group);
        number.is_some_and(|number| {
            self.users.by_key.values().any(|user| user.groups.contains(number))
        })
    }

    /// The names of all groups that have members or rules.
    pub(super) fn group_names(&self) -> impl Iterator<Item = &str> {
        self.group_numbers.names.iter().map(|name| &**name)
    }

    /// All rules, each with its source, sorted by pattern.
    pub(super) fn rules(&self) -> Vec<(&RightRule, &'static str)> {
        let own = self.program.rules.iter().map(|rule| (rule, "program"));
        let configured = self.configured.rules.iter().map(|rule| (rule, "configuration"));
        let declared = self.declared.rules.iter().map(|rule| (rule, self.declared_by));
        let stored = self.stored_rules.values().map(|rule| (rule, "stored"));
        let mut all: Vec<_> = own.chain(configured).chain(declared).chain(stored).collect();
        all.sort_by_cached_key(|(rule, source)| {
            (rule.pattern.as_str().to_owned(), rule.right, rule.who.clone(), *source)
        });
        all
    }

    /// Calls `look` with the rules of each pattern that has to allow a request for the path.
    fn each_entry<'t>(&'t self, path: &str, mut look: impl FnMut(&'t RuleEntry)) {
        let is_framework =
            start_segment(path).is_some_and(|first| first == FRAMEWORK) && path.starts_with('/');
        if is_framework {
            return self.paths.find_within(FRAMEWORK, path).into_iter().for_each(look);
        }
        let found = self.paths.find(path);
        if self.open.find(path).is_some() && found.is_none_or(|entry| !entry.is_literal()) {
            return;
        }
        found.into_iter().for_each(&mut look);
        if path.contains("//") {
            // A router and a handler may read such a path differently.
            self.paths.find_collapsed(path).into_iter().for_each(&mut look);
        }
        // The file that the path of a folder means.
        for name in &self.index_names {
            let below = self.paths.find_below(path, name);
            below.filter(|entry| entry.ending() == Ending::Literal).into_iter().for_each(&mut look);
        }
        // A precompressed variant has the content of its original.
        let original = ENCODINGS.iter().find_map(|ending| path.strip_suffix(ending));
        if let Some(original) = original
            && found.is_none_or(|entry| entry.ending() != Ending::Literal)
        {
            self.look_at_name(original, &mut look);
        }
        // The folder of an index file, whose path means this file.
        let file = original.unwrap_or(path);
        if let Some((folder, name)) = file.rsplit_once('/')
            && self.index_names.iter().any(|index| index == name)
        {
            self.look_at_name(folder, &mut look);
        }
    }

    /// Looks at the rules of a pattern that names the path, or all its siblings.
    fn look_at_name<'t>(&'t self, path: &str, look: &mut impl FnMut(&'t RuleEntry)) {
        let found = self.paths.find(path).filter(|entry| entry.ending() != Ending::Rest);
        found.into_iter().for_each(look);
    }

    fn add_source(&mut self, source: &RuleSource) {
        source.rules.iter().for_each(|rule| self.add_rule(rule));
        source.members.iter().for_each(|member| self.add_member(member));
    }

    fn remove_source(&mut self, source: &RuleSource) {
        source.rules.iter().for_each(|rule| self.remove_rule(rule));
        source.members.iter().for_each(|member| self.remove_member(member));
    }

    fn add_rule(&mut self, rule: &RightRule) {
        let RightRule { pattern, right, who } = rule;
        let who = self.subject(who, |user| user.rules += 1);
        if pattern.is_channel() {
            self.channels.add(pattern, *right, who);
            self.some_channel.add(*right, who);
        } else {
            self.paths.add(pattern, *right, who);
        }
    }

    fn remove_rule(&mut self, rule: &RightRule) {
        let RightRule { pattern, right, who } = rule;
        let who = self.subject(who, |user| user.rules -= 1);
        if pattern.is_channel() {
            self.channels.remove(pattern, *right, who);
            self.some_channel.remove(*right, who);
        } else {
            self.paths.remove(pattern, *right, who);
        }
    }

    fn add_member(&mut self, member: &Membership) {
        let number = self.group_numbers.of(&member.group);
        self.users.change(&member.user, |user| user.groups.push(number));
    }

    fn remove_member(&mut self, member: &Membership) {
        let number = self.group_numbers.of(&member.group);
        self.users.change(&member.user, |user| {
            if let Some(place) = user.groups.iter().position(|group| *group == number) {
                user.groups.swap_remove(place);
            }
        });
    }

    /// The subject of a rule, with the number of its group or user. Changes the user.
    fn subject(&mut self, who: &Who, change: impl FnOnce(&mut NamedUser)) -> NumberedSubject {
        match who {
            Who::Anonymous => NumberedSubject::Anonymous,
            Who::Users => NumberedSubject::LoggedIn,
            Who::Administrators => NumberedSubject::Group(self.group_numbers.of(ADMINISTRATORS)),
            Who::Group(name) => NumberedSubject::Group(self.group_numbers.of(name)),
            Who::User(name) => NumberedSubject::User(self.users.change(name, change)),
        }
    }
}

/// The file name endings of precompressed variants.
const ENCODINGS: [&str; 3] = [".gz", ".br", ".zst"];

fn start_segment(path: &str) -> Option<&str> {
    path.strip_prefix('/')?.split('/').next()
}

impl NamedUsers {
    fn find(&self, name: &str) -> Option<&NamedUser> {
        self.by_key.get(&*self.names.key(name))
    }

    /// Changes a user, and forgets the user if no rule and no membership remains. Returns the
    /// user's number.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut NamedUser)) -> u64 {
        let key: Box<str> = self.names.key(name).into();
        let mut place = match self.by_key.entry(key) {
            Entry::Occupied(place) => place,
            Entry::Vacant(vacant) => {
                let number = self.next;
                self.next += 1;
                vacant.insert_entry(NamedUser { number, rules: 0, groups: Vec::new() })
            }
        };
        change(place.get_mut());
        let NamedUser { number, rules, ref groups } = *place.get();
        if rules == 0 && groups.is_empty() {
            place.remove();
        }
        number
    }
}

impl GroupNumbers {
    fn of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.by_name.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.into());
        self.by_name.insert(name.into(), number);
        number
    }
}

impl RuleSource {
    /// Adds the rules of the framework's own administration.
    pub(super) fn with_administration(mut self) -> Self {
        for path in ["/_bine/metrics", "/_bine/reload"] {
            let rule = RightRule::new(path, Right::Write, Who::Administrators);
            self.rules.push(rule.expect("both are paths"));
        }
        self
    }

    /// Checks the limits.
    ///
    /// # Errors
    ///
    /// There are too many rules, or a user is in too many groups.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.rules.len() > MAX_RULES {
            return Err(format!(
                "there are {} rules, and {MAX_RULES} are allowed; give rights to groups",
                self.rules.len()
            ));
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for Membership { user, .. } in &self.members {
            let count = counts.entry(user).or_default();
            *count += 1;
            if *count > MAX_GROUPS {
                return Err(format!("{user} is in more than {MAX_GROUPS} groups"));
            }
        }
        Ok(())
    }

    /// Whether a group has members or rules here.
    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.members.is_empty()
    }
}

impl Membership {
    /// The membership with the name of the user in the form that the program stores.
    ///
    /// # Errors
    ///
    /// The form is reserved or too long.
    pub(super) fn stored(&self, names: NameComparison) -> Result<Self, String> {
        Self::new(&names.key(&self.user), &self.group)
    }

    /// Checks the names of a user and a group.
    ///
    /// # Errors
    ///
    /// A name is invalid or reserved.
    pub(super) fn new(user: &str, group: &str) -> Result<Self, String> {
        super::who::check_user(user)?;
        super::who::check_group(group)?;
        Ok(Self { user: user.into(), group: group.into() })
    }

    /// Parses a line of the configuration: a group and its members, as in `editors: ann, ben`.
    ///
    /// # Errors
    ///
    /// The line is invalid; the message names the correction.
    pub(super) fn parse_line(line: &str) -> Result<Vec<Self>, String> {
        let form = || "must be a group and its members: editors: ann, ben".to_owned();
        let (group, members) = line.split_once(':').ok_or_else(form)?;
        let member = |user: &str| Self::new(user.trim(), group.trim());
        members.split(',').map(member).collect()
    }
}

#[cfg(test)]
mod tests;
