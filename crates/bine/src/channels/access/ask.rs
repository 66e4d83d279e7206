//! The program's access function and its arguments.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use bine_http::{Head, query};
use bine_server::Incoming;

use super::grant::Grant;
use crate::Error;
use crate::arguments::{FromRequest, Needs, Rejection, RequestParts, State};
use crate::channels::Channels;
use crate::sessions::{Login, VisitorSession};
use crate::store::Store;
use crate::text::Text;
use crate::trace::RequestDependency;

/// The credentials of a client, as an argument of an [access function](super::Access::authorize).
///
/// The answer may depend on these values only, because it is cached for all requests with the
/// same ones.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    authorization: Option<String>,
    cookies: Option<String>,
    token: Option<String>,
    user: Option<Text>,
    address: Option<IpAddr>,
}

impl Credentials {
    /// The `Authorization` field as sent.
    pub fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// The value of a cookie (RFC 6265).
    pub fn cookie(&self, name: &str) -> Option<&str> {
        cookie(self.cookies.as_deref().unwrap_or_default(), name)
    }

    /// The raw `access_token` of the query, for clients that cannot send fields.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The [logged-in](crate::Session::log_in) user. Held requests end with that session.
    ///
    /// ```
    /// use bine::channels::{Access, Credentials, Grant};
    ///
    /// async fn may(credentials: Credentials) -> Grant {
    ///     match credentials.user() {
    ///         Some(user) => Grant::to(user).follow(format!("inbox/{user}")),
    ///         None => Grant::none(),
    ///     }
    /// }
    /// # let _ = Access::none().authorize(may);
    /// ```
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The address of the client; `None` for a Unix socket.
    pub const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    fn by(request: &Incoming<'_>, user: Option<Text>) -> Self {
        let field = |name| request.head.field_text(name).map(str::to_owned);
        Self {
            authorization: field("Authorization"),
            cookies: field("Cookie"),
            token: token_in_query(&request.head).map(str::to_owned),
            user,
            address: request.peer.ip(),
        }
    }
}

/// The query parameter with a token, for clients that cannot send fields (RFC 6750 section 2.3).
/// The access log omits its value.
pub(super) const QUERY: &str = "access_token";

/// Returns the login of a request, if its session is logged in.
pub(super) fn login_of(request: &Incoming<'_>) -> Option<Login> {
    VisitorSession::of(request)?.login()
}

/// Returns the token in the query (RFC 6750 section 2.3).
pub(super) fn token_in_query<'h>(head: &Head<'h>) -> Option<&'h str> {
    let mut pairs = query::pairs(head.query()?);
    pairs.find(|(name, _)| name.raw() == QUERY).map(|(_, token)| token.raw())
}

/// Finds a cookie by name.
pub(super) fn cookie<'c>(cookies: &'c str, name: &str) -> Option<&'c str> {
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(own, _)| *own == name).map(|(_, value)| value)
}

impl FromRequest for Credentials {
    fn from_request(
        request: &mut RequestParts<'_>,
        _name: &'static str,
    ) -> Result<Self, Rejection> {
        // A page may take this argument too; its cache entry then depends on the whole request.
        let Incoming { head, peer, .. } = request.incoming;
        RequestDependency::Whole.note(|| [head.raw(), format!("{peer:?}").as_bytes()].concat());
        let user = request.look_at_user();
        Ok(Self::by(request.incoming, user))
    }
}

/// An argument type that an access function may take.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an argument of an access function",
    note = "it takes `Credentials`, `Store`, `State<T>` and `Channels`; its answer is cached for requests with the same credentials"
)]
pub trait AccessArgument: FromRequest {}

impl AccessArgument for Credentials {}
impl AccessArgument for Store {}
impl AccessArgument for Channels {}
impl<T: Send + Sync + 'static> AccessArgument for State<T> {}

/// A return type of an access function: a [`Grant`], or a `Result` of one.
pub trait IntoGrant {
    /// Converts the value.
    ///
    /// # Errors
    ///
    /// The function failed; the client gets this error.
    fn grant(self) -> Result<Grant, Error>;
}

impl IntoGrant for Grant {
    fn grant(self) -> Result<Grant, Error> {
        Ok(self)
    }
}

impl<E: Into<Error>> IntoGrant for Result<Grant, E> {
    fn grant(self) -> Result<Grant, Error> {
        self.map_err(Into::into)
    }
}

/// The future of an access function.
pub(super) type GrantFuture = Pin<Box<dyn Future<Output = Result<Grant, Error>>>>;

/// An async function of up to four arguments that returns a client's grant.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an access function",
    note = "it is an async function of `Credentials`, `Store`, `State<T>` and `Channels`, four at most, that returns a `Grant` \
            or a `Result` of one"
)]
pub trait AccessFunction<A>: Send + Sync + 'static {
    /// Calls the function.
    ///
    /// # Errors
    ///
    /// The request lacks a required argument.
    #[doc(hidden)]
    fn ask(&self, request: &mut RequestParts<'_>) -> Result<GrantFuture, Rejection>;

    /// The requirements of the arguments for the program.
    #[doc(hidden)]
    fn needs(needs: &mut Needs);
}

macro_rules! ask_with {
    ($($argument:ident),*) => {
        impl<F, R, $($argument),*> AccessFunction<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> R + Send + Sync + 'static,
            R: Future<Output: IntoGrant> + 'static,
            $($argument: AccessArgument),*
        {
            fn ask(&self, request: &mut RequestParts<'_>) -> Result<GrantFuture, Rejection> {
                let _ = &request;
                let answer = self($($argument::from_request(request, "an argument")?),*);
                Ok(Box::pin(async { answer.await.grant() }))
            }

            fn needs(needs: &mut Needs) {
                let _ = &needs;
                $($argument::needs(needs);)*
            }
        }
    };
}

ask_with!();
ask_with!(A);
ask_with!(A, B);
ask_with!(A, B, C);
ask_with!(A, B, C, D);

/// Takes the arguments of an access function and calls it.
type Call = dyn Fn(&mut RequestParts<'_>) -> Result<GrantFuture, Rejection> + Send + Sync;

/// An access function with its argument types erased.
#[derive(Clone)]
pub(super) struct ErasedAccessFunction {
    call: Arc<Call>,
    needs: fn(&mut Needs),
}

impl ErasedAccessFunction {
    pub(super) fn new<A: 'static, F: AccessFunction<A>>(function: F) -> Self {
        Self { call: Arc::new(move |request| function.ask(request)), needs: F::needs }
    }

    pub(super) fn ask(&self, request: &mut RequestParts<'_>) -> Result<GrantFuture, Rejection> {
        (self.call)(request)
    }

    pub(super) fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        (self.needs)(&mut needs);
        needs
    }
}
