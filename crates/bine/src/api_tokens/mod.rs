//! API tokens of users: programs use them instead of a session cookie. Each token has a scope and an
//! expiry; the server stores its hash only.

mod choices;
mod command;
mod pages;
mod subsystem;
mod token_row;
mod token_store;

use std::sync::Arc;

use bine_http::Status;

use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
use crate::audit;
use crate::credentials::{CredentialScope, TOKEN_PREFIX};
use crate::error::Error;
use crate::problem::ArgumentError;
use crate::random_token::random_token;
use crate::sessions::{User, VisitorSession};
use crate::store::{Change, Id, RowId, Store, Time, Transaction};
use crate::text::Text;
use crate::visitor_message::ApiTokenMessage;

use token_row::TokenRow;
use token_store::{TokenStore, hash_of};

/// The API tokens of the logged-in user, as an argument of a page. The program needs
/// [`App::api_tokens`](crate::App::api_tokens).
///
/// ```
/// use bine::prelude::*;
/// use bine::{ApiTokens, NewApiToken};
///
/// #[page(POST "/robot")]
/// async fn robot(tokens: ApiTokens) -> Result<Response, Error> {
///     let wanted = NewApiToken::new("nightly export").read_only().paths(["/api/*"]).expires_in_days(30);
///     let created = tokens.create(wanted).await?;
///     // The server stores a hash: this is the only moment at which the token is known.
///     Ok(Response::text(created.secret))
/// }
///
/// let app = App::new().api_tokens().page(robot);
/// # drop(app);
/// ```
///
/// A client sends the token as `Authorization: Bearer TOKEN`, or as the password of Basic
/// authentication with the name of its user. The request then has this [`User`] everywhere: in pages,
/// services, filters, channels and live pages.
#[derive(Clone, Debug)]
pub struct ApiTokens {
    store: Store,
    user: Text,
    /// Whether the request itself has an API token.
    is_by_token: bool,
}

/// A token, without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiToken {
    /// The id for [`ApiTokens::revoke`].
    pub id: RowId,
    /// The user's description.
    pub label: Text,
    /// The requests that it permits, such as `read /api/*`.
    pub scope: String,
    /// When it was created.
    pub created: Time,
    /// When it expires.
    pub expires: Time,
    /// When it was last used, with a precision of an hour.
    pub last_used: Option<Time>,
}

/// A token that [`ApiTokens::create`] has created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatedApiToken {
    /// The token.
    pub token: ApiToken,
    /// The text that a client sends. The server cannot display it again.
    pub secret: String,
}

/// The properties of a token to [create](ApiTokens::create).
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct NewApiToken {
    label: String,
    is_read_only: bool,
    paths: Vec<String>,
    days: u32,
}

/// Tokens of one user.
const MAX_OF_USER: usize = 50;
/// The lifetime of a token by default, in days.
const DEFAULT_DAYS: u32 = 90;
/// The longest lifetime of a token, in days.
const MAX_DAYS: u32 = 365;
/// The longest description in characters.
const MAX_LABEL: usize = 100;
/// Microseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

impl NewApiToken {
    /// A token with this description of 1 to 100 characters. It expires after 90 days and permits
    /// all that its user may do, except to create tokens and to change sessions.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), is_read_only: false, paths: Vec::new(), days: DEFAULT_DAYS }
    }

    /// Permits only methods that change nothing: GET, HEAD, OPTIONS and QUERY.
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Permits only these paths: `/status` is one path, `/api/*` all paths below `/api/`. At most 16.
    pub fn paths(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.paths = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the lifetime: 1 to 365 days.
    pub fn expires_in_days(mut self, days: u32) -> Self {
        self.days = days;
        self
    }

    /// Returns the first invalid property with the reason.
    fn check(&self) -> Result<CredentialScope, Error> {
        let is_wrong = |letter: char| letter.is_control();
        let length = self.label.trim().chars().count();
        if !(1..=MAX_LABEL).contains(&length) || self.label.contains(is_wrong) {
            return Err(invalid("label", ApiTokenMessage::LabelLength { most: MAX_LABEL }));
        }
        if !(1..=MAX_DAYS).contains(&self.days) {
            return Err(invalid("days", ApiTokenMessage::DaysRange { most: MAX_DAYS }));
        }
        CredentialScope::new(self.is_read_only, self.paths.clone())
            .map_err(|reason| invalid("paths", ApiTokenMessage::PathsForm { reason }))
    }
}

impl ApiTokens {
    /// The tokens of the user that have not expired, the oldest first.
    pub fn all(&self) -> Vec<ApiToken> {
        let now = Time::now();
        let rows = self.store.read();
        let rows = rows.find(TokenRow::BY_USER, self.user.clone());
        rows.filter(|row| row.expires > now).map(|row| row.described()).collect()
    }

    /// Creates a token.
    ///
    /// # Errors
    ///
    /// A property is invalid (422), the user has 50 tokens (409), the request itself has an API token
    /// (403), or the store cannot write at the moment.
    pub fn create(
        &self,
        wanted: NewApiToken,
    ) -> Change<
        impl FnMut(&mut Transaction) -> Result<CreatedApiToken, Error> + use<>,
        CreatedApiToken,
        Error,
    > {
        let (user, is_by_token) = (self.user.clone(), self.is_by_token);
        self.store.change(move |change| {
            refuse_tokens(is_by_token)?;
            create(change, &user, &wanted, &user)
        })
    }

    /// Revokes a token at once, also for requests that are open. Returns false if this user has no
    /// such token.
    ///
    /// # Errors
    ///
    /// The request itself has an API token (403), or the store cannot write at the moment.
    pub fn revoke(
        &self,
        id: RowId,
    ) -> Change<impl FnMut(&mut Transaction) -> Result<bool, Error> + use<>, bool, Error> {
        let (user, is_by_token) = (self.user.clone(), self.is_by_token);
        self.store.change(move |change| {
            refuse_tokens(is_by_token)?;
            let row = change.get(Id::<TokenRow>::of(id)).filter(|row| row.user == user);
            let Some(row) = row else { return Ok(false) };
            change.remove(row.id)?;
            audit::record(change, &user, "token revoke", &user, &row.label)?;
            Ok(true)
        })
    }
}

/// Rejects one property (422).
fn invalid(name: &str, reason: ApiTokenMessage) -> Error {
    Error::of_arguments(Status::UNPROCESSABLE_CONTENT, vec![ArgumentError::new(name, reason)])
}

/// A stolen token must not create tokens that outlive it.
fn refuse_tokens(is_by_token: bool) -> Result<(), Error> {
    if is_by_token {
        return Err(Error::told(Status::FORBIDDEN, ApiTokenMessage::ByToken {}));
    }
    Ok(())
}

/// Creates a token of `user`, in the name of `actor`.
fn create(
    change: &mut Transaction,
    user: &Text,
    wanted: &NewApiToken,
    actor: &str,
) -> Result<CreatedApiToken, Error> {
    let scope = wanted.check()?;
    let now = Time::now();
    let rows: Vec<_> = change.find(TokenRow::BY_USER, user.clone()).collect();
    let (valid, expired): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.expires > now);
    for row in expired {
        change.remove(row.id)?;
    }
    if valid.len() >= MAX_OF_USER {
        let message = ApiTokenMessage::TooMany { most: MAX_OF_USER };
        return Err(Error::told(Status::CONFLICT, message));
    }
    let secret = format!("{TOKEN_PREFIX}{}", random_token());
    let mut row = TokenRow {
        id: Id::unassigned(),
        hash: hash_of(&secret).to_vec(),
        user: user.clone(),
        label: wanted.label.trim().into(),
        is_read_only: scope.is_read_only,
        paths: scope.paths.join(" "),
        expires: Time(now.0 + i64::from(wanted.days) * DAY),
        last_used: None,
    };
    row.id = change.insert(row.clone())?;
    let detail = format!("{}: {scope}, {} days", row.label, wanted.days);
    audit::record(change, actor, "token create", user, &detail)?;
    Ok(CreatedApiToken { token: row.described(), secret })
}

impl FromRequest for ApiTokens {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let User(user) = User::from_request(request, name)?;
        let visitor_session = VisitorSession::of(request.incoming);
        let is_by_token = visitor_session.is_some_and(|own| own.credential().is_some());
        let store = Store::from_request(request, name)?;
        Ok(Self { store, user, is_by_token })
    }

    fn needs(needs: &mut Needs) {
        User::needs(needs);
        needs.require::<Arc<TokenStore>>(
            "takes `ApiTokens`, and the program has none; add `.api_tokens()` to the app",
        );
    }
}
