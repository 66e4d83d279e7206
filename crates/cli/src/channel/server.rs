//! Decides how the program speaks with a server's channels: where that is, who it says to be, and what a failure is.

use std::env;
use std::fmt::{self, Write as _};
use std::time::Duration;

use ureq::http::{HeaderMap, Response};
use ureq::{Agent, Body};

use super::arguments::Arguments;
use super::terminal::harmless;

/// The options that say where and who.
pub(super) const OPTIONS: [&str; 2] = ["--server=", "--token="];

/// A server with channels.
pub(super) struct Server {
    agent: Agent,
    /// Without the slash at its end.
    address: String,
    /// `Bearer ..`.
    authorization: Option<String>,
}

/// How something is sent.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Post,
    Put,
    Patch,
    Delete,
}

/// What a server answered.
pub(super) struct Told {
    pub(super) status: u16,
    pub(super) head: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Why there is no answer that was hoped for.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server says no, in these words, and from where on it would say yes (410).
    No { reason: String, cursor: Option<String> },
    /// It cannot be reached, or is not able to answer now.
    Away(String),
}

/// Where a server is that was started without a word.
const USUAL: &str = "http://127.0.0.1:8080";
/// A poll may wait for 30 seconds of these.
const PATIENCE: Duration = Duration::from_mins(1);
const CONNECT: Duration = Duration::from_secs(10);
/// Of an answer: a poll has a megabyte of messages, each told with what goes with it.
const MOST: u64 = 64 << 20;

impl Server {
    /// The one that is named, or that runs here.
    ///
    /// # Errors
    ///
    /// The name is no address.
    pub(super) fn of(arguments: &Arguments) -> Result<Self, String> {
        let said = arguments.value("--server=").map(ToOwned::to_owned);
        let said = said.or_else(|| env::var("BINE_SERVER").ok().filter(|said| !said.is_empty()));
        let address = said.or_else(running).unwrap_or_else(|| USUAL.to_owned());
        if !address.starts_with("http://") && !address.starts_with("https://") {
            return Err(format!("`{address}` is no address like http://127.0.0.1:8080"));
        }
        let token = arguments.value("--token=").map(ToOwned::to_owned);
        let token = token.or_else(|| env::var("BINE_TOKEN").ok().filter(|token| !token.is_empty()));
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            // A message is not to be published elsewhere than where it was meant to be.
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(PATIENCE))
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

    /// Reads `target`.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no good one.
    pub(super) fn get(&self, target: &str) -> Result<Told, Failure> {
        let mut request = self.agent.get(self.url(target)).header("Accept", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        self.told(request.call())
    }

    /// Sends `body` to `target` with fields.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no good one.
    pub(super) fn send(
        &self,
        way: Way,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Told, Failure> {
        let url = self.url(target);
        let mut request = match way {
            Way::Post => self.agent.post(url),
            Way::Put => self.agent.put(url),
            Way::Patch => self.agent.patch(url),
            // ureq sends no content with one.
            Way::Delete => self.agent.delete(url).force_send_body(),
        };
        let authorization = self.authorization.as_deref().map(|own| ("Authorization", own));
        for (name, value) in fields.iter().copied().chain(authorization) {
            request = request.header(name, value);
        }
        self.told(request.send(body))
    }

    fn url(&self, target: &str) -> String {
        format!("{}{target}", self.address)
    }

    fn told(&self, response: Result<Response<Body>, ureq::Error>) -> Result<Told, Failure> {
        let away = |error: ureq::Error| {
            Failure::Away(format!("{} does not answer: {error}", self.address))
        };
        let (head, mut body) = response.map_err(away)?.into_parts();
        let body = body.with_config().limit(MOST).read_to_vec().map_err(away)?;
        let status = head.status.as_u16();
        if head.status.is_success() {
            return Ok(Told { status, head: head.headers, body });
        }
        let mut reason = harmless(String::from_utf8_lossy(&body).trim_end()).into_owned();
        if let Some(place) = field(&head.headers, "Location") {
            reason = format!("it is at {place}; say so by --server");
        }
        // A page of a proxy is for browsers.
        if reason.is_empty() || reason.starts_with('<') {
            let usual = head.status.canonical_reason().unwrap_or("it does not say why");
            usual.clone_into(&mut reason);
        }
        let cursor = field(&head.headers, "Cursor").map(ToOwned::to_owned);
        Err(match status {
            429 | 502..=504 => Failure::Away(format!("{} is not able to: {reason}", self.address)),
            410 => Failure::No { reason, cursor },
            _ => Failure::No { reason: format!("{status}: {reason}"), cursor: None },
        })
    }
}

/// A field, if it is a text.
pub(super) fn field<'h>(head: &'h HeaderMap, name: &str) -> Option<&'h str> {
    head.get(name)?.to_str().ok()
}

/// Below here each channel is.
pub(super) const ROOT: &str = "/channels/";

/// Where one channel is.
pub(super) fn resource(name: &str) -> String {
    format!("{ROOT}{}", encoded(name, b"/"))
}

/// A text as it may stand in a target; `plain` are letters beside the usual ones that stand as they are.
pub(super) fn encoded(text: &str, plain: &[u8]) -> String {
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

/// The first address of the server that `bine status` would ask.
fn running() -> Option<String> {
    let status = bine::ask_running("status")?;
    let mut addresses = status.lines().filter_map(|line| line.strip_prefix("listening on "));
    addresses.find(|address| address.starts_with("http")).map(ToOwned::to_owned)
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No { reason, .. } | Self::Away(reason) => to.write_str(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_a_target_as_they_are_meant() {
        assert_eq!(resource("rooms/a b?\u{fc}"), "/channels/rooms/a%20b%3F%C3%BC");
        assert_eq!(encoded("a/b&c", b""), "a%2Fb%26c");
    }
}
