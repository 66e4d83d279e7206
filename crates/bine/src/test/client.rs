//! A client of a test's program: the cookies that all their tabs and requests share.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_http::Method;
use serde::Serialize;

use super::address;
use super::cookies::Jar;
use super::exchange::{Reply, TestRequest};

/// A client of a [`Site`](super::Site), with cookies of their own. Clones share the cookies.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) site: SocketAddr,
    jar: Arc<Mutex<Jar>>,
}

impl Client {
    pub(super) fn new(site: SocketAddr) -> Self {
        Self { site, jar: Arc::default() }
    }

    /// Returns a client without cookies for a server at this address, which the test has started
    /// as a separate process. [`Site`](super::Site) runs a server in the test's own process.
    pub fn at(address: SocketAddr) -> Self {
        Self::new(address)
    }

    /// Requests `path` without a tab, as a script of the site would.
    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.request(Method::Get, path).send()
    }

    /// Posts a value as JSON and accepts JSON.
    #[track_caller]
    pub fn post_json(&self, path: &str, value: &(impl Serialize + ?Sized)) -> Reply {
        let fetch = self.request(Method::Post, path).header("Accept", "application/json");
        fetch.json(value).send()
    }

    /// Builds a request of any method; [`send`](RequestBuilder::send) sends it.
    #[track_caller]
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        assert!(path.starts_with('/'), "a path begins with `/`, and {path:?} does not");
        RequestBuilder { client: self.clone(), request: TestRequest::new(method, path) }
    }

    /// Sends a request with the client's cookies and stores those of the response.
    pub(super) fn ask(&self, mut request: TestRequest) -> Result<Reply, String> {
        self.add_cookies(&mut request);
        let reply = request
            .send(self.site)
            .map_err(|error| describe_failure(self.site, &request, &error))?;
        self.store_cookies(&request, &reply);
        Ok(reply)
    }

    /// Adds the cookies for the request's path, unless the request sets its own.
    pub(super) fn add_cookies(&self, request: &mut TestRequest) {
        let has_own = request.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        let cookies = self.jar().header_for(address::path(&request.target));
        if let Some(cookies) = cookies.filter(|_| !has_own) {
            request.fields.push(("Cookie".to_owned(), cookies));
        }
    }

    fn store_cookies(&self, request: &TestRequest, reply: &Reply) {
        let mut jar = self.jar();
        let set = reply.headers().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        set.for_each(|(_, set)| jar.store(set, address::path(&request.target)));
    }

    fn jar(&self) -> MutexGuard<'_, Jar> {
        self.jar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Describes a request that failed without a response.
pub(super) fn describe_failure(
    site: SocketAddr,
    request: &TestRequest,
    error: &std::io::Error,
) -> String {
    let TestRequest { method, target, .. } = request;
    format!(
        "no answer to {} {target}: {error} (is the site at {site} still there?)",
        method.as_str()
    )
}

/// A request that has not been sent yet.
///
/// It claims to be from a page of the same site, unless it has an `Origin` or `Sec-Fetch-Site`
/// field.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent before `send`"]
pub struct RequestBuilder {
    client: Client,
    request: TestRequest,
}

impl RequestBuilder {
    /// Adds a header field.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    /// Sets the content.
    pub fn body(mut self, content: impl Into<Vec<u8>>) -> Self {
        self.request.body = content.into();
        self
    }

    /// Sets the content to a value, serialized as JSON.
    ///
    /// # Panics
    ///
    /// The value cannot be serialized as JSON.
    #[track_caller]
    pub fn json(self, value: &(impl Serialize + ?Sized)) -> Self {
        match serde_json::to_vec(value) {
            Ok(text) => self.header("Content-Type", "application/json").body(text),
            Err(error) => panic!("this value cannot be JSON: {error}"),
        }
    }

    /// Reads at most this many bytes of the response's content and then closes the connection. Use
    /// it for a response that does not end, such as a stream of events, or one above 256 MiB.
    pub const fn max_body_size(mut self, bytes: u64) -> Self {
        self.request.most = Some(bytes);
        self
    }

    /// Sends the request. Redirects are not followed.
    ///
    /// # Panics
    ///
    /// The connection fails, or the response has not ended within thirty seconds.
    #[track_caller]
    pub fn send(mut self) -> Reply {
        let says_origin = self.request.fields.iter().any(|(name, _)| {
            name.eq_ignore_ascii_case("origin") || name.eq_ignore_ascii_case("sec-fetch-site")
        });
        if !says_origin {
            self.request = self.request.header("Sec-Fetch-Site", "same-origin");
        }
        match self.client.ask(self.request) {
            Ok(reply) => reply,
            Err(reason) => panic!("{reason}"),
        }
    }
}
