//! Decides who may call a service or an action, and what everybody else is told.

use std::fmt;
use std::sync::Arc;

use bine_http::Status;

use super::call::{Asked, Caller};
use crate::app_state::AppState;
use crate::error::Error;
use crate::route::AccessRule;

/// Who may call a service or an action: what [`App::services_for`](crate::App::services_for) says of all that say nothing
/// themselves, and `#[service(who = NAME)]` or `action!(who = NAME, ..)` of one, where `NAME` is a constant.
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
///     call.insert(Brewer { id: Id::new(), name })?;
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
/// let app = App::new().table::<Brewer>().services_for(Rule::USERS).service(brew).service(version).service(taste);
/// # drop(app);
/// ```
#[derive(Clone, Copy)]
pub struct Rule {
    name: &'static str,
    /// Of whom it looks at nobody, there is none.
    asks: Option<Asks>,
}

/// What a rule asks.
type Asks = fn(&Caller) -> Result<bool, Error>;

impl Rule {
    /// Whoever comes.
    pub const ANYONE: Self = Self { name: "anyone", asks: None };

    /// Who has [logged in](crate::Session::log_in).
    pub const USERS: Self =
        Self::new("users", |caller| Ok(caller.request_session().look_at_user().is_some()));

    /// Those of whom `asks` says so, called `name` where it is told what a program serves.
    ///
    /// It is asked before the service's arguments are looked at, perhaps twice, on the connection's own loop: it looks at
    /// memory, and must neither block nor change anything. For `false` who has not logged in is answered 401, and who has 403;
    /// an error is answered as it is.
    pub const fn new(name: &'static str, asks: fn(&Caller) -> Result<bool, Error>) -> Self {
        Self { name, asks: Some(asks) }
    }

    /// What it is called.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What the list of routes shows of it.
    pub(crate) const fn access(&self) -> AccessRule {
        AccessRule { name: self.name, needs_session: self.asks.is_some() }
    }

    /// Lets a call pass, or says why not.
    pub(super) fn admit(&self, asked: &Arc<Asked>) -> Result<(), Error> {
        let Some(asks) = self.asks else { return Ok(()) };
        let caller = Caller::new(Arc::clone(asked));
        if asks(&caller)? {
            return Ok(());
        }
        let name = self.name;
        Err(match caller.request_session().look_at_user() {
            None => {
                Error::status(Status::UNAUTHORIZED, format!("This is for {name}. Log in first."))
            }
            Some(_) => Error::forbidden(format!("This is for {name}.")),
        })
    }
}

/// The rule of all services and actions that have none of their own, which the program shares.
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
