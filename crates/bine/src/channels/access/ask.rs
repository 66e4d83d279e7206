//! Decides how a function of the program is asked who may do what.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use bine_http::{Head, query};
use bine_server::Incoming;

use super::grant::Grant;
use crate::Error;
use crate::arguments::{Argument, Arguments, Needs, Rejection, State};
use crate::channels::Channels;
use crate::sessions::{Login, Visit};
use crate::store::Store;
use crate::text::Text;
use crate::trace::RequestDependency;

/// What a visitor shows of themselves, as an argument of a function that is [asked](super::Access::ask) what they may do.
///
/// It is all that its answer may depend on, since the answer holds for whoever shows the same.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    authorization: Option<String>,
    cookies: Option<String>,
    token: Option<String>,
    user: Option<Text>,
    address: Option<IpAddr>,
}

impl Asked {
    /// The field `Authorization`, as it was sent.
    pub fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// The cookie of this name (RFC 6265).
    pub fn cookie(&self, name: &str) -> Option<&str> {
        cookie(self.cookies.as_deref().unwrap_or_default(), name)
    }

    /// What stands in the query as `access_token`, for who can send no fields; still encoded.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Who has [logged in](crate::Session::log_in). What waits by the answer ends with that session.
    ///
    /// ```
    /// use bine::channels::{Access, Asked, Grant};
    ///
    /// async fn may(asked: Asked) -> Grant {
    ///     match asked.user() {
    ///         Some(user) => Grant::to(user).follow(format!("inbox/{user}")),
    ///         None => Grant::nothing(),
    ///     }
    /// }
    /// # let _ = Access::none().ask(may);
    /// ```
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Where it comes from; `None` through a Unix socket.
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

/// In a query, a token of who can send no fields (RFC 6750 section 2.3). The access log leaves its value out.
pub(super) const QUERY: &str = "access_token";

/// The login of whoever asks, if they have logged in.
pub(super) fn login_of(request: &Incoming<'_>) -> Option<Login> {
    Visit::of(request)?.login()
}

/// What a head has in its query as a token (RFC 6750 section 2.3).
pub(super) fn token_in_query<'h>(head: &Head<'h>) -> Option<&'h str> {
    let mut pairs = query::pairs(head.query()?);
    pairs.find(|(name, _)| name.raw() == QUERY).map(|(_, token)| token.raw())
}

/// The cookie of a name among several.
pub(super) fn cookie<'c>(cookies: &'c str, name: &str) -> Option<&'c str> {
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(own, _)| *own == name).map(|(_, value)| value)
}

impl Argument for Asked {
    fn take(request: &mut Arguments<'_>, _name: &'static str) -> Result<Self, Rejection> {
        // A page may take it too.
        let Incoming { head, peer, .. } = request.incoming;
        RequestDependency::Whole.note(|| [head.raw(), format!("{peer:?}").as_bytes()].concat());
        let user = request.look_at_user();
        Ok(Self::by(request.incoming, user))
    }
}

/// What a function may take that is asked who may do what.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a function asked for access may take",
    note = "it takes `Asked`, `Store`, `State<T>` and `Channels`: its answer is kept for whoever shows the same"
)]
pub trait Known: Argument {}

impl Known for Asked {}
impl Known for Store {}
impl Known for Channels {}
impl<T: Send + Sync + 'static> Known for State<T> {}

/// What a function says that is asked who may do what: a [`Grant`], or why it cannot say.
pub trait Granting {
    /// The answer.
    ///
    /// # Errors
    ///
    /// It cannot say, and the visitor is told this.
    fn grant(self) -> Result<Grant, Error>;
}

impl Granting for Grant {
    fn grant(self) -> Result<Grant, Error> {
        Ok(self)
    }
}

impl<E: Into<Error>> Granting for Result<Grant, E> {
    fn grant(self) -> Result<Grant, Error> {
        self.map_err(Into::into)
    }
}

/// An answer under way.
pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Grant, Error>>>>;

/// An async function of up to four arguments that says what a visitor may do with channels.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be asked for access",
    note = "it is an async function of `Asked`, `Store`, `State<T>` and `Channels`, four at most, that returns a `Grant` \
            or a `Result` of one"
)]
pub trait Ask<A>: Send + Sync + 'static {
    /// Asks.
    ///
    /// # Errors
    ///
    /// The request does not have what it takes.
    #[doc(hidden)]
    fn ask(&self, request: &mut Arguments<'_>) -> Result<Answering, Rejection>;

    /// What its arguments must have.
    #[doc(hidden)]
    fn needs(needs: &mut Needs);
}

macro_rules! ask_with {
    ($($argument:ident),*) => {
        impl<F, R, $($argument),*> Ask<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> R + Send + Sync + 'static,
            R: Future<Output: Granting> + 'static,
            $($argument: Known),*
        {
            fn ask(&self, request: &mut Arguments<'_>) -> Result<Answering, Rejection> {
                let _ = &request;
                let answer = self($($argument::take(request, "an argument")?),*);
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

/// Takes the arguments of a function and asks it.
type Call = dyn Fn(&mut Arguments<'_>) -> Result<Answering, Rejection> + Send + Sync;

/// A function that is asked, whatever it takes.
#[derive(Clone)]
pub(super) struct Function {
    call: Arc<Call>,
    needs: fn(&mut Needs),
}

impl Function {
    pub(super) fn new<A: 'static, F: Ask<A>>(function: F) -> Self {
        Self { call: Arc::new(move |request| function.ask(request)), needs: F::needs }
    }

    pub(super) fn ask(&self, request: &mut Arguments<'_>) -> Result<Answering, Rejection> {
        (self.call)(request)
    }

    pub(super) fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        (self.needs)(&mut needs);
        needs
    }
}
