//! The tree of rules: finds the most specific pattern with a rule, and the users with rights there.
//! A lookup does not allocate.

use std::collections::BTreeMap;

use super::rule::{RulePattern, RuleSegment};
use super::who::Right;

/// All patterns of one kind. From the start of a path on, a literal takes precedence over `{x}`,
/// and `{x}` over `*`.
#[derive(Debug)]
pub(super) struct RuleTree {
    /// The root is `nodes[0]`.
    nodes: Vec<RuleNode>,
}

#[derive(Debug, Default)]
struct RuleNode {
    literals: BTreeMap<Box<str>, u32>,
    any: Option<u32>,
    /// The rules of the pattern that ends here.
    end: Option<Box<RuleEntry>>,
    /// The rules of the pattern whose rest starts here.
    rest: Option<Box<RuleEntry>>,
}

/// The rules of one pattern: how many rules give each subject each right.
#[derive(Debug, Default)]
pub(super) struct RuleEntry {
    pattern: Box<str>,
    ending: Ending,
    is_literal: bool,
    rules: u32,
    anonymous: RightCounts,
    logged_in: RightCounts,
    /// By the number of the group.
    groups: BTreeMap<u32, RightCounts>,
    /// By the number of the user.
    users: BTreeMap<u64, RightCounts>,
}

/// How many rules give each right, by its level.
type RightCounts = [u32; 3];

/// The last segment of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Ending {
    Literal,
    Any,
    #[default]
    Rest,
}

/// A subject whose group or user, if it is one, has a number.
#[derive(Clone, Copy)]
pub(super) enum NumberedSubject {
    Anonymous,
    LoggedIn,
    Group(u32),
    User(u64),
}

/// The client of a decision.
#[derive(Clone, Copy)]
pub(super) struct RightHolder<'u> {
    /// Whether the client has logged in.
    pub(super) is_user: bool,
    /// The number of the user; `None`: no rule and no membership names the user.
    pub(super) user: Option<u64>,
    /// The numbers of the user's groups.
    pub(super) groups: &'u [u32],
}

/// The segments of a path, or of a channel's name. A slash at the end has no meaning.
#[derive(Clone, Copy)]
struct PathSegments<'p> {
    left: &'p str,
    /// A segment after the last one.
    extra: Option<&'p str>,
    /// Whether empty segments are skipped.
    skips_empty: bool,
}

impl Default for RuleTree {
    fn default() -> Self {
        Self { nodes: vec![RuleNode::default()] }
    }
}

impl RuleTree {
    /// Adds a rule.
    pub(super) fn add(&mut self, pattern: &RulePattern, right: Right, who: NumberedSubject) {
        self.entry(pattern).add(right, who);
    }

    /// Removes a rule that was added. A pattern without rules has no effect.
    pub(super) fn remove(&mut self, pattern: &RulePattern, right: Right, who: NumberedSubject) {
        let (place, is_rest) = self.place(pattern);
        let node = &mut self.nodes[place];
        let slot = if is_rest { &mut node.rest } else { &mut node.end };
        if let Some(entry) = slot {
            entry.remove(right, who);
            if entry.rules == 0 {
                *slot = None;
            }
        }
    }

    fn entry(&mut self, pattern: &RulePattern) -> &mut RuleEntry {
        let (place, is_rest) = self.place(pattern);
        let node = &mut self.nodes[place];
        let slot = if is_rest { &mut node.rest } else { &mut node.end };
        slot.get_or_insert_with(|| Box::new(RuleEntry::of(pattern)))
    }

    /// The node of a pattern, which this call creates if necessary, and whether the pattern ends
    /// with the rest.
    fn place(&mut self, pattern: &RulePattern) -> (usize, bool) {
        let mut place = 0;
        for segment in pattern.segments() {
            // There are far fewer nodes than 2^32: the number of rules is limited.
            let next = self.nodes.len() as u32;
            let node = &mut self.nodes[place];
            let found = match segment {
                RuleSegment::Literal(text) => *node.literals.entry(text.clone()).or_insert(next),
                RuleSegment::Any => *node.any.get_or_insert(next),
                RuleSegment::Rest => return (place, true),
            };
            if found == next {
                self.nodes.push(RuleNode::default());
            }
            place = found as usize;
        }
        (place, false)
    }

    /// The rules of the most specific pattern that `path` matches, as the path is written: an empty
    /// segment within it matches `*` only.
    pub(super) fn find(&self, path: &str) -> Option<&RuleEntry> {
        self.search(PathSegments { left: start(path), extra: None, skips_empty: false })
    }

    /// The same for the path without its empty segments.
    pub(super) fn find_collapsed(&self, path: &str) -> Option<&RuleEntry> {
        self.search(PathSegments { left: start(path), extra: None, skips_empty: true })
    }

    /// The same for the path with one more segment.
    pub(super) fn find_below(&self, path: &str, name: &str) -> Option<&RuleEntry> {
        self.search(PathSegments { left: start(path), extra: Some(name), skips_empty: false })
    }

    /// The same, among the patterns whose first segment is this literal.
    pub(super) fn find_within(&self, first: &str, path: &str) -> Option<&RuleEntry> {
        let node = *self.nodes[0].literals.get(first)?;
        let left = start(path).strip_prefix(first)?;
        let segments = PathSegments { left: start(left), extra: None, skips_empty: false };
        self.nodes[node as usize].find(&self.nodes, segments)
    }

    fn search(&self, segments: PathSegments<'_>) -> Option<&RuleEntry> {
        self.nodes[0].find(&self.nodes, segments)
    }
}

impl RuleNode {
    /// The recursion is no deeper than the longest pattern.
    fn find<'n>(&'n self, nodes: &'n [Self], left: PathSegments<'_>) -> Option<&'n RuleEntry> {
        let Some((segment, behind)) = left.split() else {
            return self.end.as_deref().or(self.rest.as_deref());
        };
        let next = |place: &u32| nodes[*place as usize].find(nodes, behind);
        let by_literal = || self.literals.get(segment).and_then(next);
        let by_any = || self.any.as_ref().filter(|_| !segment.is_empty()).and_then(next);
        by_literal().or_else(by_any).or(self.rest.as_deref())
    }
}

impl<'p> PathSegments<'p> {
    /// The first segment, and those after it.
    fn split(self) -> Option<(&'p str, Self)> {
        let left = if self.skips_empty { self.left.trim_start_matches('/') } else { self.left };
        if left.is_empty() {
            return self.extra.map(|extra| (extra, Self { left: "", extra: None, ..self }));
        }
        let (segment, behind) = left.split_once('/').unwrap_or((left, ""));
        Some((segment, Self { left: behind, ..self }))
    }
}

impl RuleEntry {
    fn of(pattern: &RulePattern) -> Self {
        let is_literal = |segment: &RuleSegment| matches!(segment, RuleSegment::Literal(_));
        Self {
            pattern: pattern.as_str().into(),
            ending: match pattern.segments().last() {
                None | Some(RuleSegment::Literal(_)) => Ending::Literal,
                Some(RuleSegment::Any) => Ending::Any,
                Some(RuleSegment::Rest) => Ending::Rest,
            },
            is_literal: pattern.segments().iter().all(is_literal),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, right: Right, who: NumberedSubject) {
        self.counts(who)[level(right)] += 1;
        self.rules += 1;
    }

    pub(super) fn remove(&mut self, right: Right, who: NumberedSubject) {
        let counts = self.counts(who);
        counts[level(right)] -= 1;
        let is_empty = *counts == RightCounts::default();
        self.rules -= 1;
        match who {
            NumberedSubject::Group(group) if is_empty => drop(self.groups.remove(&group)),
            NumberedSubject::User(user) if is_empty => drop(self.users.remove(&user)),
            _ => {}
        }
    }

    fn counts(&mut self, who: NumberedSubject) -> &mut RightCounts {
        match who {
            NumberedSubject::Anonymous => &mut self.anonymous,
            NumberedSubject::LoggedIn => &mut self.logged_in,
            NumberedSubject::Group(group) => self.groups.entry(group).or_default(),
            NumberedSubject::User(user) => self.users.entry(user).or_default(),
        }
    }

    /// Whether the client has the right: the rights of everyone, of the user and of its groups are
    /// united.
    pub(super) fn allows(&self, right: Right, client: RightHolder<'_>) -> bool {
        if gives(&self.anonymous, right) {
            return true;
        }
        if !client.is_user {
            return false;
        }
        gives(&self.logged_in, right)
            || client
                .user
                .and_then(|user| self.users.get(&user))
                .is_some_and(|counts| gives(counts, right))
            || client
                .groups
                .iter()
                .any(|group| self.groups.get(group).is_some_and(|counts| gives(counts, right)))
    }

    /// The pattern, as the first of its rules wrote it.
    pub(super) fn pattern(&self) -> &str {
        &self.pattern
    }

    pub(super) const fn ending(&self) -> Ending {
        self.ending
    }

    /// Whether the pattern matches one path only.
    pub(super) const fn is_literal(&self) -> bool {
        self.is_literal
    }
}

fn start(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

const fn level(right: Right) -> usize {
    match right {
        Right::Read | Right::Follow => 0,
        Right::Write | Right::Publish => 1,
        Right::Manage => 2,
    }
}

/// Whether the rules give the right. The right to write includes the right to read.
const fn gives(counts: &RightCounts, right: Right) -> bool {
    counts[level(right)] > 0 || matches!(right, Right::Read) && counts[level(Right::Write)] > 0
}
