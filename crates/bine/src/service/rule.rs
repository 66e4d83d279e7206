//! Access rules: which callers may call a service or an action.

use std::fmt;
use std::sync::Arc;

use bine_http::Status;

use super::call::{CallContext, Caller};
use crate::app_state::AppState;
use crate::error::Error;
use crate::route::AccessRule;
use crate::visitor_message::VisitorMessage;

/// An access rule for services and actions.
/// [`App::default_service_rule`](crate::App::default_service_rule) sets the default;
/// `#[service(who = NAME)]` and `action!(who = NAME, ..)` set the rule of one, where `NAME` is a
/// constant.
///
/// ```
/// use bine::Rule;
/// use bine::prelude::*;
///
/// #[derive(Table)]
/// struct Brewer {
///     id: Id<Brewer>,
///     #[table(unique)]
///     name: Text,
/// }
///
/// const BREWERS: Rule = Rule::new("brewers", |caller| {
///     let Some(user) = caller.user() else { return Ok(false) };
///     Ok(caller.store().read().find(Brewer::BY_NAME, &*user).next().is_some())
/// });
///
/// #[service(who = BREWERS)]
/// fn brew(call: &mut Call, name: Text) -> Result<(), Error> {
///     call.insert(Brewer { id: Id::unassigned(), name })?;
///     Ok(())
/// }
///
/// #[service(who = "anyone")]
/// fn version() -> &'static str {
///     "1.0"
/// }
///
/// #[service]
/// fn taste() {}
///
/// let app = App::new().table::<Brewer>().default_service_rule(Rule::USERS);
/// let app = app.service(brew).service(version).service(taste);
/// # drop(app);
/// ```
#[derive(Clone, Copy)]
pub struct Rule {
    name: &'static str,
    condition: Condition,
}

/// Which callers a rule allows.
#[derive(Clone, Copy)]
enum Condition {
    Everyone,
    /// Callers for whom the function returns true.
    Function(Predicate),
    /// The members of the group with the rule's name.
    Group,
}

/// The function of a rule.
type Predicate = fn(&Caller) -> Result<bool, Error>;

impl Rule {
    /// Allows every caller.
    pub const ANYONE: Self = Self { name: "anyone", condition: Condition::Everyone };

    /// Allows users who have [logged in](crate::Session::log_in).
    pub const USERS: Self =
        Self::new("users", |caller| Ok(caller.request_session().look_at_user().is_some()));

    /// Allows no client: only the program itself calls the service, by
    /// [`App::every`](crate::App::every).
    pub const PROGRAM: Self = Self::new("program", |_| Ok(false));

    /// Allows callers for whom `predicate` returns true. `name` is the rule's name in the list of
    /// routes and in errors.
    ///
    /// The function runs before the service's arguments are read, perhaps twice, on the
    /// connection's event loop: it reads memory, and must neither block nor change data. For
    /// `false`, a caller without a login receives 401, any other caller 403; an error is the
    /// response.
    pub const fn new(name: &'static str, predicate: fn(&Caller) -> Result<bool, Error>) -> Self {
        Self { name, condition: Condition::Function(predicate) }
    }

    /// Allows the members of a [group](crate::Rights::is_in). A program with such a rule has
    /// [rights](crate::App::rights) anyway.
    ///
    /// ```
    /// use bine::Rule;
    /// use bine::prelude::*;
    ///
    /// const EDITORS: Rule = Rule::group("editors");
    ///
    /// #[service(who = EDITORS)]
    /// fn publish(page: Text) {}
    /// # let _ = App::new().service(publish);
    /// ```
    pub const fn group(name: &'static str) -> Self {
        Self { name, condition: Condition::Group }
    }

    /// The rule's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The rule's entry in the list of routes.
    pub(crate) const fn access(&self) -> AccessRule {
        AccessRule {
            name: self.name,
            needs_session: !matches!(self.condition, Condition::Everyone),
            group: match self.condition {
                Condition::Group => Some(self.name),
                Condition::Everyone | Condition::Function(_) => None,
            },
        }
    }

    /// Returns an error if the rule rejects the call.
    pub(super) fn admit(&self, context: &Arc<CallContext>) -> Result<(), Error> {
        match self.condition {
            Condition::Everyone => Ok(()),
            _ => self.admit_caller(&Caller::new(Arc::clone(context))),
        }
    }

    /// Returns an error if the rule rejects the caller.
    pub(crate) fn admit_caller(&self, caller: &Caller) -> Result<(), Error> {
        if caller.context().is_program() {
            return Ok(());
        }
        let name = self.name;
        let is_allowed = match self.condition {
            Condition::Everyone => true,
            Condition::Function(predicate) => predicate(caller)?,
            Condition::Group => caller
                .request_session()
                .look_at_user()
                .zip(caller.app().guard.as_ref())
                .is_some_and(|(user, guard)| guard.is_member(&user, name)),
        };
        if is_allowed {
            return Ok(());
        }
        let rule = name.to_owned();
        let sends_token = || {
            let field = caller.header("authorization").unwrap_or_default();
            field.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("Bearer "))
        };
        Err(match caller.request_session().look_at_user() {
            // A program with a token cannot log in, so that its token is the mistake.
            None if sends_token() => {
                Error::told(Status::UNAUTHORIZED, VisitorMessage::TokenNotAccepted { rule })
            }
            None => Error::told(Status::UNAUTHORIZED, VisitorMessage::LogInFirst { rule }),
            Some(_) => Error::told(Status::FORBIDDEN, VisitorMessage::NotAllowed { rule }),
        })
    }
}

/// The default rule of the program's services and actions.
pub(crate) struct DefaultRule(pub(crate) Rule);

/// The rule of a service or an action.
pub(super) fn rule_for(own: Option<Rule>, app: &AppState) -> Rule {
    let default = || app.states.find::<DefaultRule>().map(|rule| rule.0);
    own.or_else(default).unwrap_or(Rule::ANYONE)
}

impl fmt::Debug for Rule {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Rule").field(&self.name).finish()
    }
}
