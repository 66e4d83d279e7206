//! Calls services of a remote server as functions, over pooled connections.
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
//! A call sends no cookies and follows no redirect. A call that may change data is sent at most
//! once: after [`Error::Unanswered`] or [`Error::TimedOut`] the caller cannot know whether it was
//! carried out.

mod address;
pub(crate) mod answer;
mod blocking_calls;
mod call;
mod check;
mod connection;
mod error;
mod events;
#[cfg_attr(not(feature = "script"), allow(dead_code, reason = "scripts send any request"))]
pub(crate) mod http_request;
mod listener;
mod pool;
pub(crate) mod trust;

#[cfg(test)]
pub(crate) mod tests;

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

use crate::percent_encoding::percent_encode;
use crate::service::Callable;
use crate::wire;
use address::Address;
use call::RemoteRequest;

#[doc(hidden)]
pub use check::{check_answer, check_events};
pub use error::Error;
pub use listener::Listener;

/// Creates a client of a remote server from its address: `https://name`, with a port or a path if
/// they are not the default. It connects at the first call, which also reports an invalid address.
pub fn remote(address: &str) -> Remote {
    Remote {
        address: Address::parse(address),
        token: None,
        roots: None,
        connect_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(30),
        max_answer: 1 << 20,
    }
}

/// A remote server, whose services can be called. Idle connections are kept for four seconds and
/// shared by all callers in the program. At most 64 calls to one server run at once; further calls
/// wait.
#[derive(Clone)]
pub struct Remote {
    address: Result<Address, String>,
    token: Option<String>,
    roots: Option<Result<Arc<ClientConfig>, String>>,
    connect_timeout: Duration,
    timeout: Duration,
    max_answer: usize,
}

/// A service of a remote server by its path, for services whose functions this program does not
/// have.
#[derive(Clone, Debug)]
pub struct RemoteService {
    remote: Remote,
    path: String,
}

/// A prepared call: await it, or call [`wait`](RemoteCall::wait) in a blocking function.
#[must_use = "nothing is called before this is awaited or, in a function that may block, waited for by `wait()`"]
pub struct RemoteCall<T> {
    answer: Pin<Box<dyn Future<Output = Result<Vec<u8>, Error>> + Send>>,
    max_answer: usize,
    kind: PhantomData<fn() -> T>,
}

impl Remote {
    /// Sends this token with each call: `Authorization: Bearer ..` (RFC 6750).
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Trusts the server only if one of these certificates (PEM) vouches for it, instead of the
    /// system's certificates. The list may contain the server's own certificate if it is
    /// self-signed.
    ///
    /// Keep the value if you call often: its clones share connections, but two values with equal
    /// certificates do not.
    #[must_use]
    pub fn root_certificates(mut self, pem: &[u8]) -> Self {
        self.roots = Some(trust::of(pem));
        self
    }

    /// Sets the time limit for a connection. The default is 5 seconds.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Sets the time limit for a call, including the wait for a free slot and the connection. The
    /// default is 30 seconds.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Sets the largest size of an answer in bytes. The default is a megabyte.
    #[must_use]
    pub fn max_response_size(mut self, bytes: usize) -> Self {
        self.max_answer = bytes;
        self
    }

    /// Calls a service by its `#[service]` function, with the arguments as a tuple. Both programs
    /// have the function from a shared crate; only the remote server runs it.
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
    pub fn call<C>(&self, service: C, arguments: C::Arguments) -> RemoteCall<C::Output>
    where
        C: Callable,
        C::Arguments: Serialize,
        C::Output: DeserializeOwned,
    {
        let service = service.service();
        let path = service.path();
        let request = to_object(service.arguments(), &arguments)
            .map_err(|fault| Error::Misused(format!("{path}: the arguments: {fault}")))
            .and_then(|body| self.prepare(&path, body));
        let request =
            request.map(|request| RemoteRequest { is_safe: service.is_safe(), ..request });
        RemoteCall::of(request, self.max_answer)
    }

    /// The service at a path, such as `/board/post`.
    pub fn service(&self, path: impl Into<String>) -> RemoteService {
        RemoteService { remote: self.clone(), path: path.into() }
    }

    /// Listens to an event by its name.
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

    fn prepare(&self, path: &str, body: Vec<u8>) -> Result<RemoteRequest, Error> {
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

    fn listening(&self, event: &str) -> Result<RemoteRequest, Error> {
        let path = format!("/_bine/live?on={}", percent_encode(event));
        self.request("GET", &path, "Accept: text/event-stream\r\n", Vec::new())
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        fields: &str,
        body: Vec<u8>,
    ) -> Result<RemoteRequest, Error> {
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
        let (connect_timeout, timeout, max_answer) =
            (self.connect_timeout, self.timeout, self.max_answer);
        Ok(RemoteRequest {
            address,
            roots,
            head,
            body,
            is_head: false,
            is_safe: false,
            connect_timeout,
            timeout,
            max_answer,
        })
    }
}

impl RemoteService {
    /// Calls the service. `arguments` are serialized as a JSON object, so they are a struct or a
    /// map; `&()` without arguments.
    pub fn call<A: Serialize + ?Sized, T: DeserializeOwned>(&self, arguments: &A) -> RemoteCall<T> {
        let request = wire::to_json(arguments)
            .map_err(|fault| Error::Misused(format!("{}: the arguments: {fault}", self.path)))
            .and_then(|body| {
                let body = if body == b"null" { b"{}".to_vec() } else { body };
                self.remote.prepare(&self.path, body)
            });
        RemoteCall::of(request, self.remote.max_answer)
    }
}

impl<T: DeserializeOwned> RemoteCall<T> {
    fn of(request: Result<RemoteRequest, Error>, max_answer: usize) -> Self {
        let answer = Box::pin(async { request?.perform().await });
        Self { answer, max_answer, kind: PhantomData }
    }

    /// Makes the call and waits for the answer. Do not call it in an async function: it blocks the
    /// thread's other requests.
    ///
    /// # Errors
    ///
    /// The call failed.
    pub fn wait(self) -> Result<T, Error> {
        let answer = match blocking_calls::wait(self.answer) {
            Ok(Some(answer)) => answer?,
            Ok(None) => {
                return Err(Error::Unanswered("the call panicked; see the log".into()));
            }
            Err(error) => {
                return Err(Error::Unreached(format!(
                    "cannot start a thread for the call: {error}"
                )));
            }
        };
        decode(&answer, self.max_answer)
    }
}

impl<T: DeserializeOwned> Future for RemoteCall<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.answer.as_mut().poll(context))?;
        Poll::Ready(decode(&answer, self.max_answer))
    }
}

/// Writes a tuple as a JSON object with these names.
fn to_object<'n>(
    names: impl Iterator<Item = &'n str>,
    tuple: &impl Serialize,
) -> Result<Vec<u8>, wire::Fault> {
    let text = wire::to_json(tuple)?;
    // Without arguments the tuple is `null`.
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

/// Parses the answer. The called server is trusted, so the number of keys is limited only by the
/// size.
fn decode<T: DeserializeOwned>(answer: &[u8], max_bytes: usize) -> Result<T, Error> {
    let limits = wire::Limits {
        bytes: max_bytes.max(4),
        keys: max_bytes,
        values: max_bytes,
        ..wire::Limits::default()
    };
    let value = wire::read(answer, &limits).and_then(|value| wire::from_value(&value));
    value.map_err(|fault| Error::Misunderstood(format!("the answer: {fault}")))
}

/// Without the token, which is secret.
impl fmt::Debug for Remote {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Remote").field("address", &self.address).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for RemoteCall<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("RemoteCall")
    }
}
