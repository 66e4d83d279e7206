//! Follows channels on a terminal. It polls, because every answer to a poll is complete and names
//! the cursor at which it ends; after a failure the next poll continues from there.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;

use super::arguments::ChannelArguments;
use super::server::{Failure, Response, Server, field, percent_encoded};
use super::terminal::sanitize;

/// A subscription that is printed to standard output.
struct Follower<'a> {
    server: &'a Server,
    /// The channels as a query: `c=..&c=..`.
    channels: String,
    /// The position of the last message, as the query's `after`: a cursor, `now`, `earliest` or a
    /// time.
    after: String,
    is_json: bool,
    /// The number of messages still to print; `None` without a limit.
    remaining: Option<u64>,
}

/// Whether to continue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Continue,
    Stop,
}

/// Seconds for which the server may hold a poll.
const POLL_WAIT: u64 = 25;
/// The delay before a retry doubles between these limits.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(250);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);
/// An empty answer that arrives sooner than this, although the poll was allowed to wait, is
/// followed by a delay.
const MIN_POLL_TIME: Duration = Duration::from_secs(1);

/// Prints messages as they arrive, until the channels are closed.
///
/// # Errors
///
/// The server refuses to serve the channels, or standard output is closed.
pub(super) fn follow(server: &Server, arguments: &ChannelArguments) -> Result<(), String> {
    if arguments.positional.is_empty() {
        return Err("name at least one channel to follow".to_owned());
    }
    let names = arguments.positional.iter().map(|name| format!("c={}", percent_encoded(name, b"")));
    let count = arguments.value("--count=").map(|count| {
        let number = count.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| format!("`{count}` is not a positive number of messages"))
    });
    let mut follower = Follower {
        server,
        channels: names.collect::<Vec<_>>().join("&"),
        after: arguments.value("--after=").unwrap_or("now").to_owned(),
        is_json: arguments.has("--json"),
        remaining: count.transpose()?,
    };
    // The first poll does not wait, so that mistakes are reported at once. Its answer has the
    // cursor with which later polls resume.
    let first = follower.poll(0);
    if follower.print(&first.map_err(|failure| failure.to_string())?)? == Next::Stop {
        return Ok(());
    }
    let mut delay = MIN_RETRY_DELAY;
    loop {
        let start = Instant::now();
        match follower.poll(POLL_WAIT) {
            Ok(response) => {
                let is_early = response.status == 204 && start.elapsed() < MIN_POLL_TIME;
                if follower.print(&response)? == Next::Stop {
                    return Ok(());
                }
                if !is_early {
                    delay = MIN_RETRY_DELAY;
                    continue;
                }
            }
            // The server has dropped messages, or a different server answers at this address.
            Err(Failure::Refused { reason, cursor: Some(cursor) }) => {
                eprintln!("bine: {reason}");
                follower.after = cursor;
            }
            Err(Failure::Refused { reason, cursor: None }) => return Err(reason),
            Err(Failure::Unavailable(reason)) if delay == MIN_RETRY_DELAY => {
                eprintln!("bine: {reason}; retrying");
            }
            Err(Failure::Unavailable(_)) => {}
        }
        thread::park_timeout(delay);
        delay = (delay * 2).min(MAX_RETRY_DELAY);
    }
}

impl Follower<'_> {
    fn poll(&self, wait: u64) -> Result<Response, Failure> {
        let Self { channels, after, .. } = self;
        let limit = self
            .remaining
            .map(|remaining| format!("&limit={}", remaining.min(1000)))
            .unwrap_or_default();
        let after = percent_encoded(after, b"");
        self.server.get(&format!("/channels?{channels}&after={after}&wait={wait}&gap=allow{limit}"))
    }

    /// Prints the messages of an answer and advances the cursor.
    fn print(&mut self, response: &Response) -> Result<Next, String> {
        if let Some(lost) = field(&response.headers, "Cursor-Lost") {
            eprintln!("bine: messages up to {lost} are gone");
        }
        let cursor =
            field(&response.headers, "Cursor").ok_or("the server's answer lacks a cursor")?;
        cursor.clone_into(&mut self.after);
        if !response.body.is_empty() {
            let unreadable = |error| format!("cannot parse the server's answer: {error}");
            let messages: Vec<&RawValue> =
                serde_json::from_slice(&response.body).map_err(unreadable)?;
            let mut out = io::stdout().lock();
            let is_terminal = out.is_terminal();
            for message in &messages {
                let text = self.line(message).map_err(unreadable)?;
                // A publisher must not control the terminal of a subscriber.
                let text = if is_terminal { sanitize(&text) } else { Cow::Borrowed(&*text) };
                writeln!(out, "{text}").map_err(|error| format!("cannot print: {error}"))?;
            }
            out.flush().map_err(|error| format!("cannot print: {error}"))?;
            self.remaining =
                self.remaining.map(|remaining| remaining.saturating_sub(messages.len() as u64));
        }
        let is_closed = field(&response.headers, "Stream-Closed") == Some("true");
        Ok(if is_closed || self.remaining == Some(0) { Next::Stop } else { Next::Continue })
    }

    /// Returns the text that is printed for a message.
    fn line(&self, message: &RawValue) -> Result<String, serde_json::Error> {
        if self.is_json {
            return Ok(message.get().to_owned());
        }
        let message: Value = serde_json::from_str(message.get())?;
        Ok(match (&message["data"], &message["base64"]) {
            (Value::String(text), _) | (Value::Null, Value::String(text)) => text.clone(),
            (value, _) => value.to_string(),
        })
    }
}
