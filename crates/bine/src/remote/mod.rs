//! Decides how a program calls the services of another server: as functions, by their names, over one kept connection
//! or another.
//!
//! ```no_run
//! use bine::prelude::*;
//! use bine::remote;
//!
//! #[page("/temperature")]
//! async fn temperature() -> Result<impl Page, Error> {
//!     let cellar = remote("https://cellar.home:8443").token("brewing");
//!     let degrees: f64 = cellar.service("/thermostat/read").call(&()).await?;
//!     Ok(html!(<p>{degrees} degrees</p>))
//! }
//! ```
//!
//! A call carries no cookies and follows no redirection. It is sent at most once if it may change anything: whoever
//! gets [`Error::Unanswered`] or [`Error::TimedOut`] does not know whether it was carried out.

mod address;
pub(crate) mod answer;
mod aside;
mod call;
mod check;
mod error;
mod events;
mod line;
mod listener;
mod pool;
pub(crate) mod trust;

#[cfg(test)]
mod tests;

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustls::ClientConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::service::Callable;
use crate::wire;
use address::Address;
use call::Request;

#[doc(hidden)]
pub use check::{check_answer, check_events};
pub use error::Error;
pub use listener::Listener;

/// Another server, by its address: `https://name`, with a port or a path where they are not the usual ones. Nothing
/// is sent before a call; what is wrong with the address is told by the first.
pub fn remote(address: &str) -> Remote {
    Remote {
        address: Address::read(address),
        token: None,
        roots: None,
        connect: Duration::from_secs(5),
        whole: Duration::from_secs(30),
        most: 1 << 20,
    }
}

/// Another server, whose services can be called. Connections are kept for four seconds and shared by all who call it;
/// 64 calls of it are under way at most, others wait for their turn.
#[derive(Clone)]
pub struct Remote {
    address: Result<Address, String>,
    token: Option<String>,
    roots: Option<Result<Arc<ClientConfig>, String>>,
    connect: Duration,
    whole: Duration,
    most: usize,
}

/// A service of another server, by its path: of one whose functions this program does not know.
#[derive(Clone, Debug)]
pub struct RemoteService {
    remote: Remote,
    path: String,
}

/// A call to be made, by a task that awaits it or a thread that [waits](Calling::wait).
#[must_use = "nothing is called before this is awaited or, in a function that may block, waited for by `wait()`"]
pub struct Calling<T> {
    answer: Pin<Box<dyn Future<Output = Result<Vec<u8>, Error>> + Send>>,
    most: usize,
    kind: PhantomData<fn() -> T>,
}

impl Remote {
    /// Shows this with each call: `Authorization: Bearer ..` (RFC 6750).
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Trusts the server if one of these certificates (PEM) vouches for it, and not those whom the system trusts. Its
    /// own may be among them, if it is self-signed.
    ///
    /// Whoever calls often keeps the value: connections are shared by its clones, not with others of the same roots.
    #[must_use]
    pub fn roots(mut self, pem: &[u8]) -> Self {
        self.roots = Some(trust::of(pem));
        self
    }

    /// A connection must be there by then: 5 seconds, unless said otherwise.
    #[must_use]
    pub fn connect_timeout(mut self, patience: Duration) -> Self {
        self.connect = patience;
        self
    }

    /// A call must be answered by then, the wait for its turn and the connection included: 30 seconds, unless said
    /// otherwise.
    #[must_use]
    pub fn timeout(mut self, patience: Duration) -> Self {
        self.whole = patience;
        self
    }

    /// An answer has so many bytes at most: a megabyte, unless said otherwise.
    #[must_use]
    pub fn most(mut self, bytes: usize) -> Self {
        self.most = bytes;
        self
    }

    /// Calls a service of it: the function that `#[service]` is above there, with its arguments as a tuple. Both
    /// programs know it from a crate that they share; only the one that serves it runs it.
    ///
    /// ```no_run
    /// use bine::prelude::*;
    /// use bine::remote;
    ///
    /// /// Of a crate that both know.
    /// #[service]
    /// fn heat(degrees: f64, until: Time) -> f64 {
    ///     degrees
    /// }
    ///
    /// #[page(POST "/warmer")]
    /// async fn warmer() -> Result<Response, Error> {
    ///     let cellar = remote("https://cellar.home:8443");
    ///     cellar.call(heat, (21.5, Time::now())).await?;
    ///     Ok(Response::see_other("/"))
    /// }
    /// ```
    pub fn call<C>(&self, service: C, arguments: C::Arguments) -> Calling<C::Answer>
    where
        C: Callable,
        C::Arguments: Serialize,
        C::Answer: DeserializeOwned,
    {
        let service = service.service();
        let path = service.path();
        let request = by_names(service.arguments(), &arguments)
            .map_err(|fault| Error::Misused(format!("{path}: the arguments: {fault}")))
            .and_then(|body| self.calling(&path, body));
        let request = request.map(|request| Request { is_safe: service.is_safe(), ..request });
        Calling::of(request, self.most)
    }

    /// Its service at that path, as `/board/post`.
    pub fn service(&self, path: impl Into<String>) -> RemoteService {
        RemoteService { remote: self.clone(), path: path.into() }
    }

    /// Listens to its event of that name.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use bine::remote;
    /// let mut readings = remote("https://cellar.home:8443").on::<f64>("temperature");
    /// loop {
    ///     match readings.wait(Duration::from_mins(1)) {
    ///         Some(Ok(degrees)) => println!("{degrees} degrees"),
    ///         Some(Err(error)) => println!("nothing is heard: {error}"),
    ///         None => println!("nothing was told"),
    ///     }
    /// }
    /// ```
    pub fn on<T: DeserializeOwned>(&self, event: impl Into<String>) -> Listener<T> {
        Listener::new(self.clone(), event.into())
    }

    fn calling(&self, path: &str, body: Vec<u8>) -> Result<Request, Error> {
        if !path.starts_with('/') || !address::is_path(path) {
            let what =
                format!("`{path}` is no path of a service: it begins with `/`, and has no spaces");
            return Err(Error::Misused(what));
        }
        let fields = format!(
            "Accept: application/json, application/problem+json\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        self.request("POST", path, &fields, body)
    }

    fn listening(&self, event: &str) -> Result<Request, Error> {
        let path = format!("/_bine/live?on={}", address::encoded(event));
        self.request("GET", &path, "Accept: text/event-stream\r\n", Vec::new())
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        fields: &str,
        body: Vec<u8>,
    ) -> Result<Request, Error> {
        let address = self.address.clone().map_err(Error::Misused)?;
        let roots = self.roots.clone().transpose().map_err(Error::Misused)?;
        let is_sign = |byte: u8| byte.is_ascii_graphic();
        let token = match &self.token {
            Some(token) if !token.is_empty() && token.bytes().all(is_sign) => {
                format!("Authorization: Bearer {token}\r\n")
            }
            Some(_) => {
                let what = "a token has letters, digits and signs, no spaces";
                return Err(Error::Misused(what.to_owned()));
            }
            None => String::new(),
        };
        let (base, host, version) = (&address.base, address.authority(), env!("CARGO_PKG_VERSION"));
        let head = format!(
            "{method} {base}{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bine/{version}\r\n{fields}{token}\r\n"
        );
        let (connect, whole, most) = (self.connect, self.whole, self.most);
        Ok(Request { address, roots, head, body, is_safe: false, connect, whole, most })
    }
}

impl RemoteService {
    /// Calls it. `arguments` become an object of JSON, so they are a struct or a map: each by its name; `&()` for
    /// none.
    pub fn call<A: Serialize + ?Sized, T: DeserializeOwned>(&self, arguments: &A) -> Calling<T> {
        let request = wire::to_json(arguments)
            .map_err(|fault| Error::Misused(format!("{}: the arguments: {fault}", self.path)))
            .and_then(|body| {
                let body = if body == b"null" { b"{}".to_vec() } else { body };
                self.remote.calling(&self.path, body)
            });
        Calling::of(request, self.remote.most)
    }
}

impl<T: DeserializeOwned> Calling<T> {
    fn of(request: Result<Request, Error>, most: usize) -> Self {
        let answer = Box::pin(async { request?.answered().await });
        Self { answer, most, kind: PhantomData }
    }

    /// Makes it, and returns with the answer. Not for an async function: the others of its thread would wait too.
    ///
    /// # Errors
    ///
    /// Why there is no answer.
    pub fn wait(self) -> Result<T, Error> {
        let answer = match aside::wait(self.answer) {
            Ok(Some(answer)) => answer?,
            Ok(None) => {
                return Err(Error::Unanswered("the call failed within; see the log".into()));
            }
            Err(error) => return Err(Error::Unreached(format!("no thread to call with: {error}"))),
        };
        understood(&answer, self.most)
    }
}

impl<T: DeserializeOwned> Future for Calling<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.answer.as_mut().poll(context))?;
        Poll::Ready(understood(&answer, self.most))
    }
}

/// A tuple as an object of JSON, with these names.
fn by_names<'n>(
    names: impl Iterator<Item = &'n str>,
    tuple: &impl Serialize,
) -> Result<Vec<u8>, wire::Fault> {
    let text = wire::to_json(tuple)?;
    // Of no arguments it is `null`.
    let values: Option<Vec<&RawValue>> = serde_json::from_slice(&text)?;
    let values = values.unwrap_or_default();
    let mut object = Vec::with_capacity(text.len() + 16 * values.len());
    for (name, value) in names.zip(values) {
        object.push(if object.is_empty() { b'{' } else { b',' });
        object.extend(wire::to_json(name)?);
        object.push(b':');
        object.extend(value.get().as_bytes());
    }
    object.extend(if object.is_empty() { &b"{}"[..] } else { b"}" });
    Ok(object)
}

/// The answer as the value that is wanted. Whoever is called is trusted with its keys: the answer's bytes bound them.
fn understood<T: DeserializeOwned>(answer: &[u8], most: usize) -> Result<T, Error> {
    let limits =
        wire::Limits { bytes: most.max(4), keys: most, values: most, ..wire::Limits::default() };
    let value = wire::read(answer, &limits).and_then(|value| wire::from_value(&value));
    value.map_err(|fault| Error::Misunderstood(format!("the answer: {fault}")))
}

/// Its token is nobody's business.
impl fmt::Debug for Remote {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Remote").field("address", &self.address).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Calling<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Calling")
    }
}
