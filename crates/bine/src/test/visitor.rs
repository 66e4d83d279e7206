//! Decides what one person is for a test: cookies of their own, in all their tabs and requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_http::Method;
use serde::Serialize;

use super::address;
use super::cookies::Jar;
use super::exchange::{Reply, Request};

/// Somebody who visits a [`Site`](super::Site): whoever else visits it is another person. A clone is the same one.
#[derive(Clone, Debug)]
pub struct Visitor {
    pub(super) site: SocketAddr,
    jar: Arc<Mutex<Jar>>,
}

impl Visitor {
    pub(super) fn new(site: SocketAddr) -> Self {
        Self { site, jar: Arc::default() }
    }

    /// Somebody who was never at this address before, where a program serves that the test has started as a process of its
    /// own. One in the test's own process is a [`Site`](super::Site).
    pub fn at(address: SocketAddr) -> Self {
        Self::new(address)
    }

    /// Asks for `path` without a tab, as a script of the site would.
    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.fetch(Method::Get, path).send()
    }

    /// Posts a value as JSON, and would like JSON back.
    #[track_caller]
    pub fn post_json(&self, path: &str, value: &(impl Serialize + ?Sized)) -> Reply {
        let fetch = self.fetch(Method::Post, path).field("Accept", "application/json");
        fetch.json(value).send()
    }

    /// A request of any kind, to be sent by [`send`](Fetch::send).
    #[track_caller]
    pub fn fetch(&self, method: Method, path: &str) -> Fetch {
        assert!(path.starts_with('/'), "a path begins with `/`, and {path:?} does not");
        Fetch { visitor: self.clone(), request: Request::new(method, path) }
    }

    /// Sends a request with the cookies that belong to it, and keeps those that come back.
    pub(super) fn ask(&self, mut request: Request) -> Result<Reply, String> {
        self.dress(&mut request);
        let reply = request.send(self.site).map_err(|error| told(self.site, &request, &error))?;
        self.keep(&request, &reply);
        Ok(reply)
    }

    /// Adds the cookies that belong to a request.
    pub(super) fn dress(&self, request: &mut Request) {
        let has_own = request.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        let cookies = self.jar().of(address::path(&request.target));
        if let Some(cookies) = cookies.filter(|_| !has_own) {
            request.fields.push(("Cookie".to_owned(), cookies));
        }
    }

    fn keep(&self, request: &Request, reply: &Reply) {
        let mut jar = self.jar();
        let set = reply.fields().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        set.for_each(|(_, set)| jar.take(set, address::path(&request.target)));
    }

    fn jar(&self) -> MutexGuard<'_, Jar> {
        self.jar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why no answer came.
pub(super) fn told(site: SocketAddr, request: &Request, error: &std::io::Error) -> String {
    let Request { method, target, .. } = request;
    format!(
        "no answer to {} {target}: {error} (is the site at {site} still there?)",
        method.as_str()
    )
}

/// A request that is about to be sent.
///
/// It says that it comes from a page of the same site, unless it has a field `Origin` or `Sec-Fetch-Site`.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent before `send`"]
pub struct Fetch {
    visitor: Visitor,
    request: Request,
}

impl Fetch {
    /// Adds a header field.
    pub fn field(mut self, name: &str, value: impl Into<String>) -> Self {
        self.request = self.request.field(name, value);
        self
    }

    /// Its content.
    pub fn body(mut self, content: impl Into<Vec<u8>>) -> Self {
        self.request.body = content.into();
        self
    }

    /// A value as its content, in JSON.
    ///
    /// # Panics
    ///
    /// The value cannot be JSON.
    #[track_caller]
    pub fn json(self, value: &(impl Serialize + ?Sized)) -> Self {
        match serde_json::to_vec(value) {
            Ok(text) => self.field("Content-Type", "application/json").body(text),
            Err(error) => panic!("this value cannot be JSON: {error}"),
        }
    }

    /// Takes so many bytes of the answer's content at most and then closes the connection: for one that has no end, as
    /// a stream of events, or more than 256 MiB.
    pub const fn most(mut self, bytes: u64) -> Self {
        self.request.most = Some(bytes);
        self
    }

    /// Sends it. A redirect is not followed.
    ///
    /// # Panics
    ///
    /// No answer comes, or it has not come to an end within thirty seconds.
    #[track_caller]
    pub fn send(mut self) -> Reply {
        let says_origin = self.request.fields.iter().any(|(name, _)| {
            name.eq_ignore_ascii_case("origin") || name.eq_ignore_ascii_case("sec-fetch-site")
        });
        if !says_origin {
            self.request = self.request.field("Sec-Fetch-Site", "same-origin");
        }
        match self.visitor.ask(self.request) {
            Ok(reply) => reply,
            Err(reason) => panic!("{reason}"),
        }
    }
}
