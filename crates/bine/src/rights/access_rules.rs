//! The rules that a program declares.

use std::borrow::Cow;

use super::rights_table::{Membership, RuleSource};
use super::rule::RightRule;
use super::who::{Right, Who};

/// The access rules for paths and channels: the argument of [`App::rights`](crate::App::rights).
///
/// ```
/// use bine::{AccessRules, App, Who};
///
/// let rules = AccessRules::new()
///     .allow("/admin/*", Who::Administrators)
///     .read("/wiki/*", Who::Anonymous)
///     .allow("/wiki/*", Who::group("editors"))
///     .member("editors", "ann");
/// let app = App::new().rights(rules);
/// # drop(app);
/// ```
///
/// The most specific pattern that a path matches and that has a rule decides alone: here, only
/// administrators may request `/admin/users`, whatever a rule for `/*` says. A path that no pattern
/// matches is open to everyone.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct AccessRules {
    source: RuleSource,
    log_in_page: Option<Cow<'static, str>>,
    /// The first invalid rule.
    fault: Option<String>,
}

impl AccessRules {
    /// No rules: all paths are open until a rule is stored.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows all requests for the paths of a pattern: `/admin` alone, `/wiki/{page}` with any
    /// segment, or `/admin/*`, which is `/admin` and all paths below it.
    pub fn allow(self, pattern: &str, who: Who) -> Self {
        self.with(pattern, Right::Write, who)
    }

    /// Allows safe requests for the paths of a pattern: GET, HEAD, OPTIONS and QUERY.
    pub fn read(self, pattern: &str, who: Who) -> Self {
        self.with(pattern, Right::Read, who)
    }

    /// Gives a right. A pattern of channels has no slash at its start: `news/*`.
    pub fn with(mut self, pattern: &str, right: Right, who: Who) -> Self {
        let rule = RightRule::new(pattern, right, who);
        self.collect(rule.map(|rule| vec![rule]), |own| &mut own.source.rules);
        self
    }

    /// Adds a user to a group.
    pub fn member(mut self, group: &str, user: &str) -> Self {
        let member = Membership::new(user, group);
        self.collect(member.map(|member| vec![member]), |own| &mut own.source.members);
        self
    }

    /// Sets the path of the page where users log in: a browser without a login that requests a page
    /// is redirected there, with the path of the page as the parameter `next` of the query. In a
    /// program without such a page the response is 401. The path stays open to everyone unless a
    /// rule names exactly this path.
    pub fn log_in_page(mut self, path: &'static str) -> Self {
        self.log_in_page = Some(path.into());
        self
    }

    fn collect<T>(
        &mut self,
        made: Result<Vec<T>, String>,
        list: impl FnOnce(&mut Self) -> &mut Vec<T>,
    ) {
        match made {
            Ok(made) => list(self).extend(made),
            Err(fault) => drop(self.fault.get_or_insert(fault)),
        }
    }

    /// The rules and the page where users log in.
    ///
    /// # Errors
    ///
    /// A rule is invalid, or there are too many.
    pub(super) fn checked(self) -> Result<(RuleSource, Option<Cow<'static, str>>), String> {
        if let Some(fault) = self.fault {
            return Err(format!("`.rights(..)`: {fault}"));
        }
        self.source.check().map_err(|fault| format!("`.rights(..)`: {fault}"))?;
        Ok((self.source, self.log_in_page))
    }

    /// The rules, without a check.
    pub(super) const fn source(&self) -> &RuleSource {
        &self.source
    }
}
