//! The `Rights` argument: asks and changes rights in a handler.

use std::fmt;
use std::sync::Arc;

use super::engine::RightsEngine;
use super::rights_table::Membership;
use super::rows::{self, MembershipRow};
use super::rule::RightRule;
use super::who::{ANONYMOUS, Right, Who};
use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
use crate::error::Error;
use crate::store::{Change, Store, Transaction};
use crate::text::Text;

/// The rights of the client and of all users, as an argument of a page or a service.
///
/// ```
/// use bine::prelude::*;
/// use bine::{AccessRules, Right, Rights, Who};
///
/// #[page("/wiki")]
/// async fn wiki(rights: Rights) -> impl Page {
///     html!(<h1>Wiki</h1>
///         {rights.may(Right::Write, "/wiki/start").then(|| html!(<a href="/wiki/start/edit">Edit</a>))}
///     )
/// }
///
/// #[page(POST "/editors/{user}")]
/// async fn add_editor(rights: Rights, user: Path<Text>) -> Result<Response, Error> {
///     rights.add_to_group(&user, "editors").await?;
///     Ok(Response::see_other("/wiki"))
/// }
///
/// let rules = AccessRules::new()
///     .allow("/wiki/*", Who::group("editors"))
///     .allow("/editors/*", Who::Administrators);
/// let app = App::new().rights(rules).page(wiki).page(add_editor);
/// # drop(app);
/// ```
///
/// Changes are stored, recorded in the audit log with the client's user as the actor, and in effect
/// when the call returns: in further requests, in open live pages and in held channels. Those whose
/// names end with `_in` join a transaction of the program and commit with its other changes.
#[derive(Clone)]
pub struct Rights {
    engine: Arc<RightsEngine>,
    store: Store,
    user: Option<Text>,
}

impl Rights {
    pub(super) const fn new(engine: Arc<RightsEngine>, store: Store, user: Option<Text>) -> Self {
        Self { engine, store, user }
    }

    /// Whether the client's user is in this group. A client without a login is in no group.
    pub fn is_in(&self, group: &str) -> bool {
        self.user.as_deref().is_some_and(|user| self.engine.table().is_member(user, group))
    }

    /// Whether the client may request this path by GET. The path is decoded, without a query.
    pub fn allows(&self, path: &str) -> bool {
        self.may(Right::Read, path)
    }

    /// Whether the client has a right at this path, or in the channel of this name. For a channel
    /// without a rule the answer is no, since the program's own access rules decide then.
    pub fn may(&self, right: Right, target: &str) -> bool {
        let table = self.engine.table();
        let client = table.client(self.user.as_deref());
        if right.is_for_channels() {
            let decision = table.decide_channel(target, right, client);
            return decision.entry.is_some() && decision.is_allowed;
        }
        table.decide_path(target, right, client).is_allowed
    }

    /// The groups of the client's user, sorted by name.
    pub fn groups(&self) -> Vec<Text> {
        let table = self.engine.table();
        let groups = self.user.as_deref().map(|user| table.groups_of(user));
        groups.unwrap_or_default().into_iter().map(Text::from).collect()
    }

    /// The groups of a user, sorted by name, without `users`.
    pub fn groups_of(&self, user: &str) -> Vec<Text> {
        let user = self.engine.names().key(user);
        let fixed = self.engine.fixed_members(|member| {
            let is_of = *self.engine.names().key(&member.user) == *user;
            is_of.then(|| member.group.clone())
        });
        let snapshot = self.store.read();
        let stored = snapshot.find(MembershipRow::BY_USER, Text::from(&*user));
        sorted(fixed, stored.map(|row| row.group))
    }

    /// Whether two names are those of one user: as [accounts](crate::Accounts) compare them in a
    /// program with accounts, letter by letter in others.
    pub fn is_same_user(&self, one: &str, other: &str) -> bool {
        let names = self.engine.names();
        names.key(one) == names.key(other)
    }

    /// The members of a group, sorted by name, in the form in which rights store names: in lower case
    /// in a program with accounts. A region that shows them updates when they change. Every
    /// logged-in user is in `users`, which has no list of members.
    pub fn members(&self, group: &str) -> Vec<Text> {
        let snapshot = self.store.read();
        let stored = snapshot.find(MembershipRow::BY_GROUP, Text::from(group));
        self.members_and(group, stored.map(|row| row.user))
    }

    /// The members of a group as a transaction sees them, with its own changes.
    pub fn members_in(&self, change: &Transaction, group: &str) -> Vec<Text> {
        let stored = change.find(MembershipRow::BY_GROUP, Text::from(group));
        self.members_and(group, stored.map(|row| row.user))
    }

    /// The stored members and those of the program and the configuration.
    fn members_and(&self, group: &str, stored: impl Iterator<Item = Text>) -> Vec<Text> {
        let names = self.engine.names();
        let fixed = self.engine.fixed_members(|member| {
            (*member.group == *group).then(|| Text::from(&*names.key(&member.user)))
        });
        sorted(fixed, stored)
    }

    /// Stores a rule. Returns false if it was stored already.
    ///
    /// # Errors
    ///
    /// The rule is invalid, there are too many, or the store rejects the change.
    pub fn grant(
        &self,
        who: Who,
        right: Right,
        pattern: &str,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<bool, Error> + use<>, bool, Error> {
        self.change(rows::grant, self.rule(who, right, pattern))
    }

    /// Removes a stored rule. Returns false if it was not stored: a rule of the program or of the
    /// configuration file can be removed only there.
    ///
    /// # Errors
    ///
    /// The rule is invalid, or the store rejects the change.
    pub fn revoke(
        &self,
        who: Who,
        right: Right,
        pattern: &str,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<bool, Error> + use<>, bool, Error> {
        self.change(rows::revoke, self.rule(who, right, pattern))
    }

    /// Adds a user to a group. Returns false if the user was in it already.
    ///
    /// # Errors
    ///
    /// A name is invalid, the user is in too many groups, or the store rejects the change.
    pub fn add_to_group(
        &self,
        user: &str,
        group: &str,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<bool, Error> + use<>, bool, Error> {
        self.change(rows::add_member, self.membership(user, group))
    }

    /// Removes a user from a group. Returns false if no stored membership was found.
    ///
    /// # Errors
    ///
    /// A name is invalid, or the store rejects the change.
    pub fn remove_from_group(
        &self,
        user: &str,
        group: &str,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<bool, Error> + use<>, bool, Error> {
        self.change(rows::remove_member, self.membership(user, group))
    }

    /// Stores a rule as a part of a transaction, such as a [`Call`](crate::Call): the rule is in
    /// effect when the transaction commits. Returns false if it was stored already.
    ///
    /// # Errors
    ///
    /// As [`grant`](Self::grant).
    pub fn grant_in(
        &self,
        change: &mut Transaction,
        who: Who,
        right: Right,
        pattern: &str,
    ) -> Result<bool, Error> {
        rows::grant(change, &self.actor(), checked(&self.rule(who, right, pattern))?)
    }

    /// Removes a stored rule as a part of a transaction. Returns false if it was not stored.
    ///
    /// # Errors
    ///
    /// As [`revoke`](Self::revoke).
    pub fn revoke_in(
        &self,
        change: &mut Transaction,
        who: Who,
        right: Right,
        pattern: &str,
    ) -> Result<bool, Error> {
        rows::revoke(change, &self.actor(), checked(&self.rule(who, right, pattern))?)
    }

    /// Adds a user to a group as a part of a transaction. Returns false if the user was in it
    /// already.
    ///
    /// # Errors
    ///
    /// As [`add_to_group`](Self::add_to_group).
    pub fn add_to_group_in(
        &self,
        change: &mut Transaction,
        user: &str,
        group: &str,
    ) -> Result<bool, Error> {
        rows::add_member(change, &self.actor(), checked(&self.membership(user, group))?)
    }

    /// Removes a user from a group as a part of a transaction. Returns false if no stored membership
    /// was found.
    ///
    /// # Errors
    ///
    /// As [`remove_from_group`](Self::remove_from_group).
    pub fn remove_from_group_in(
        &self,
        change: &mut Transaction,
        user: &str,
        group: &str,
    ) -> Result<bool, Error> {
        rows::remove_member(change, &self.actor(), checked(&self.membership(user, group))?)
    }

    /// A separate transaction with one change of a row.
    fn change<T>(
        &self,
        make: fn(&mut Transaction, &str, &T) -> Result<bool, Error>,
        row: Result<T, String>,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<bool, Error> + use<T>, bool, Error> {
        let actor = self.actor();
        self.store.change(move |change| make(change, &actor, checked(&row)?))
    }

    fn rule(&self, who: Who, right: Right, pattern: &str) -> Result<RightRule, String> {
        RightRule::new(pattern, right, who)?.stored(self.engine.names())
    }

    fn membership(&self, user: &str, group: &str) -> Result<Membership, String> {
        Membership::new(user, group)?.stored(self.engine.names())
    }

    fn actor(&self) -> Text {
        self.user.clone().unwrap_or_else(|| ANONYMOUS.into())
    }
}

/// Names of several sources, each once.
fn sorted(mut names: Vec<Text>, others: impl Iterator<Item = Text>) -> Vec<Text> {
    names.extend(others);
    names.sort_unstable();
    names.dedup();
    names
}

fn checked<T>(made: &Result<T, String>) -> Result<&T, Error> {
    made.as_ref().map_err(|reason| Error::bad_request(reason.clone()))
}

impl FromRequest for Rights {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let missing = || Rejection::invalid(name, MISSING);
        let engine = request.app.states.find_shared::<RightsEngine>().ok_or_else(missing)?;
        let store = engine.store().cloned().ok_or_else(missing)?;
        Ok(Self::new(engine, store, request.look_at_user()))
    }

    fn needs(needs: &mut Needs) {
        needs.sessions = true;
        needs.require::<RightsEngine>(
            "takes `Rights`, and the program has none: add `.rights(AccessRules::new())` to the app",
        );
    }
}

const MISSING: &str =
    "needs rights, which this program does not have: add `.rights(..)` to the app";

impl fmt::Debug for Rights {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Rights").field("user", &self.user).finish_non_exhaustive()
    }
}
