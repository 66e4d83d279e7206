//! The HTTP client of `bine channel`: address, access token, requests, and failures.

use std::env;
use std::fmt::{self, Write as _};
use std::time::Duration;

use ureq::http::{self, HeaderMap};
use ureq::{Agent, Body};

use super::arguments::ChannelArguments;
use super::terminal::sanitize;

/// The options that select the server and the access token.
pub(super) const OPTIONS: [&str; 2] = ["--server=", "--token="];

/// A server with channels.
pub(super) struct Server {
    agent: Agent,
    /// Without a trailing slash.
    address: String,
    /// The header field `Bearer ..`.
    authorization: Option<String>,
}

/// The method of a request with a body.
#[derive(Clone, Copy)]
pub(super) enum Method {
    Post,
    Put,
    Patch,
    Delete,
}

/// The response of a server.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// The reason why a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server refuses. `cursor` is the one at which following may resume (410).
    Refused { reason: String, cursor: Option<String> },
    /// The server cannot be reached, or is unable to answer now.
    Unavailable(String),
}

/// The default address of a server.
const DEFAULT_ADDRESS: &str = "http://127.0.0.1:8080";
/// Includes the up to 30 seconds for which the server holds a poll.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A poll returns at most a megabyte of messages; their metadata makes the response larger.
const MAX_RESPONSE_BYTES: u64 = 64 << 20;

impl Server {
    /// Returns the server named by the options or the environment, else the one that runs here.
    ///
    /// # Errors
    ///
    /// The name is not a URL.
    pub(super) fn from_arguments(arguments: &ChannelArguments) -> Result<Self, String> {
        let named = arguments.value("--server=").map(ToOwned::to_owned);
        let named =
            named.or_else(|| env::var("BINE_SERVER").ok().filter(|named| !named.is_empty()));
        let address = named.or_else(running_server).unwrap_or_else(|| DEFAULT_ADDRESS.to_owned());
        if !address.starts_with("http://") && !address.starts_with("https://") {
            return Err(format!("`{address}` is not a URL like http://127.0.0.1:8080"));
        }
        let token = arguments.value("--token=").map(ToOwned::to_owned);
        let token = token.or_else(|| env::var("BINE_TOKEN").ok().filter(|token| !token.is_empty()));
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect could publish a message somewhere else.
            .max_redirects(0)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(REQUEST_TIMEOUT))
            .user_agent(concat!("bine/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            agent: agent.into(),
            address: address.trim_end_matches('/').to_owned(),
            authorization: token.map(|token| format!("Bearer {token}")),
        })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Sends a GET request for `target`.
    ///
    /// # Errors
    ///
    /// There is no response, or its status is not a success.
    pub(super) fn get(&self, target: &str) -> Result<Response, Failure> {
        let mut request = self.agent.get(self.url(target)).header("Accept", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        self.read_response(request.call())
    }

    /// Sends `body` to `target` with header fields.
    ///
    /// # Errors
    ///
    /// There is no response, or its status is not a success.
    pub(super) fn send(
        &self,
        method: Method,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response, Failure> {
        let url = self.url(target);
        let mut request = match method {
            Method::Post => self.agent.post(url),
            Method::Put => self.agent.put(url),
            Method::Patch => self.agent.patch(url),
            // ureq sends no body with DELETE unless forced to.
            Method::Delete => self.agent.delete(url).force_send_body(),
        };
        let authorization = self.authorization.as_deref().map(|token| ("Authorization", token));
        for (name, value) in fields.iter().copied().chain(authorization) {
            request = request.header(name, value);
        }
        self.read_response(request.send(body))
    }

    fn url(&self, target: &str) -> String {
        format!("{}{target}", self.address)
    }

    fn read_response(
        &self,
        response: Result<http::Response<Body>, ureq::Error>,
    ) -> Result<Response, Failure> {
        let unavailable = |error: ureq::Error| {
            Failure::Unavailable(format!("{} does not answer: {error}", self.address))
        };
        let (head, mut body) = response.map_err(unavailable)?.into_parts();
        let body =
            body.with_config().limit(MAX_RESPONSE_BYTES).read_to_vec().map_err(unavailable)?;
        let status = head.status.as_u16();
        if head.status.is_success() {
            return Ok(Response { status, headers: head.headers, body });
        }
        let mut reason = sanitize(String::from_utf8_lossy(&body).trim_end()).into_owned();
        if let Some(place) = field(&head.headers, "Location") {
            reason = format!("the server redirects to {place}; pass that address with --server");
        }
        // A proxy's error page is made for browsers.
        if reason.is_empty() || reason.starts_with('<') {
            let default = head.status.canonical_reason().unwrap_or("no reason given");
            default.clone_into(&mut reason);
        }
        let cursor = field(&head.headers, "Cursor").map(ToOwned::to_owned);
        Err(match status {
            429 | 502..=504 => {
                Failure::Unavailable(format!("{} is unavailable: {reason}", self.address))
            }
            410 => Failure::Refused { reason, cursor },
            _ => Failure::Refused { reason: format!("{status}: {reason}"), cursor: None },
        })
    }
}

/// Returns a header field if it is text.
pub(super) fn field<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// The path below which every channel has its resource.
pub(super) const CHANNELS_PATH: &str = "/channels/";

/// Returns the path of a channel.
pub(super) fn channel_path(name: &str) -> String {
    format!("{CHANNELS_PATH}{}", percent_encoded(name, b"/"))
}

/// Percent-encodes text for a request target. `plain` lists bytes that are not encoded, besides the
/// unreserved ones.
pub(super) fn percent_encoded(text: &str, plain: &[u8]) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || plain.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing into a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Returns the first address of the server that `bine status` would ask.
fn running_server() -> Option<String> {
    let status = bine::query_running_server("status")?;
    let mut addresses = status.lines().filter_map(|line| line.strip_prefix("listening on "));
    addresses.find(|address| address.starts_with("http")).map(ToOwned::to_owned)
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { reason, .. } | Self::Unavailable(reason) => to.write_str(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_names_in_targets() {
        assert_eq!(channel_path("rooms/a b?\u{fc}"), "/channels/rooms/a%20b%3F%C3%BC");
        assert_eq!(percent_encoded("a/b&c", b""), "a%2Fb%26c");
    }
}
