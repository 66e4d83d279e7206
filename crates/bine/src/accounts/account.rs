//! The `Account` argument: the account of the logged-in user.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::account_row::AccountRow;
use super::changes::edit_preferences;
use super::denial::Denial;
use super::directory::AccountDirectory;
use super::sign_up::invitation;
use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
use crate::error::Error;
use crate::sessions::User;
use crate::store::{Snapshot, Store, Time};
use crate::text::Text;

/// The account of the logged-in user, as an argument of a page.
///
/// Without a login the server responds with 401 and does not run the page; a page that takes
/// `Option<Account>` always runs. A page that needs only the name takes a [`User`] instead.
///
/// ```
/// use bine::prelude::*;
/// use bine::{Account, Accounts};
///
/// #[page("/")]
/// async fn home(account: Account) -> impl Page {
///     let theme: Text = account.preference("theme").unwrap_or("light".into());
///     html!(<p>Hello {account.name().clone()}. Your theme is {theme}.</p>)
/// }
///
/// #[page(POST "/theme")]
/// async fn choose(account: Account, theme: Form<Text>) -> Result<Response, Error> {
///     account.set_preference("theme", theme.0).await?;
///     Ok(Response::see_other("/"))
/// }
///
/// let app = App::new().accounts(Accounts::new()).page(home).page(choose);
/// # drop(app);
/// ```
#[derive(Clone)]
pub struct Account {
    row: AccountRow,
    store: Store,
    directory: std::sync::Arc<AccountDirectory>,
}

impl Account {
    /// The user's name, as the user wrote it at the sign-up. It never changes.
    pub const fn name(&self) -> &Text {
        &self.row.name
    }

    /// The e-mail address, if the user has confirmed one.
    pub const fn email(&self) -> Option<&Text> {
        self.row.email.as_ref()
    }

    /// When the account was created.
    pub const fn created(&self) -> Time {
        self.row.created
    }

    /// The preference that was [set](Self::set_preference) under this name, if it has this type.
    pub fn preference<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_value(self.row.preferences().remove(name)?).ok()
    }

    /// Stores a preference of the user. All preferences of an account together have at most 4096
    /// bytes as JSON.
    ///
    /// # Errors
    ///
    /// The preferences would be larger (422), the value cannot be JSON (500), the account was
    /// removed meanwhile (401), or the store cannot write at the moment.
    pub async fn set_preference(
        &self,
        name: impl Into<String>,
        value: impl Serialize,
    ) -> Result<(), Error> {
        let (id, name, value) = (self.row.id, name.into(), serde_json::to_value(value)?);
        let change = self.store.change::<_, _, Denial>(move |change| {
            edit_preferences(change, id, &|all| {
                all.insert(name.clone(), value.clone());
            })
        });
        change.await.map_err(Denial::into_error)
    }

    /// Creates an invitation for one sign-up, valid for a week: an address of this program, as a
    /// path and query. The program decides which users may invite.
    ///
    /// # Errors
    ///
    /// The sessions are not open yet.
    pub fn invite(&self) -> Result<String, Error> {
        let keys = self.directory.keys();
        let keys = keys.ok_or_else(|| Error::unavailable("the server is starting"))?;
        let text = invitation(keys, Time::now().unix());
        Ok(self.directory.settings.path(&format!("/sign-up?invitation={text}")))
    }

    fn find(request: &mut RequestParts<'_>, name: &'static str) -> Result<Option<Self>, Rejection> {
        let Some(User(user)) = Option::<User>::from_request(request, name)? else {
            return Ok(None);
        };
        let directory = request.app.states.find_shared::<AccountDirectory>();
        let directory = directory.ok_or_else(|| Rejection::invalid(name, MISSING))?;
        let store = Store::from_request(request, name)?;
        let tables: Snapshot = store.read();
        let row = AccountRow::find(&tables, &user);
        Ok(row.map(|row| Self { row, store, directory }))
    }
}

const MISSING: &str =
    "takes an `Account`, and the program has no accounts; add `.accounts(..)` to the app";

impl FromRequest for Account {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        Self::find(request, name)?.ok_or(Rejection::NeedsUser)
    }

    fn needs(needs: &mut Needs) {
        <Option<Self> as FromRequest>::needs(needs);
        needs.user = true;
    }
}

/// The account of the logged-in user, if any.
impl FromRequest for Option<Account> {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        Account::find(request, name)
    }

    fn needs(needs: &mut Needs) {
        needs.sessions = true;
        needs.require::<AccountDirectory>(MISSING);
    }
}

/// Without secrets.
impl fmt::Debug for Account {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Account").field("name", self.name()).finish_non_exhaustive()
    }
}
