//! Decides how channels are followed on a terminal: by polls, so that each answer is whole and says where it ends; what
//! breaks in between is taken up again there.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;

use super::arguments::Arguments;
use super::server::{Failure, Server, Told, encoded, field};
use super::terminal::harmless;

/// One who follows.
struct Follower<'a> {
    server: &'a Server,
    /// `c=..&c=..`.
    names: String,
    /// Where it is, as it is said to the server.
    after: String,
    is_json: bool,
    /// Messages that are still wanted; `None`: all.
    left: Option<u64>,
}

/// Whether it goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    On,
    Over,
}

/// Seconds that a poll waits.
const WAIT: u64 = 25;
/// Between two tries.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A poll that was to wait and ends sooner with nothing is not asked again at once.
const SOON: Duration = Duration::from_secs(1);

/// Prints messages as they come until the channels are closed.
///
/// # Errors
///
/// They cannot be followed (any more), or nobody reads what is printed.
pub(super) fn follow(server: &Server, arguments: &Arguments) -> Result<(), String> {
    if arguments.words.is_empty() {
        return Err("follow which channels? Name them".to_owned());
    }
    let names = arguments.words.iter().map(|name| format!("c={}", encoded(name, b"")));
    let count = arguments.value("--count=").map(|count| {
        let number = count.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| format!("`{count}` is no number of messages"))
    });
    let mut follower = Follower {
        server,
        names: names.collect::<Vec<_>>().join("&"),
        after: arguments.value("--after=").unwrap_or("now").to_owned(),
        is_json: arguments.has("--json"),
        left: count.transpose()?,
    };
    // The first look does not wait: what is wrong is told at once, and from here on there is a cursor to come back with.
    let first = follower.poll(0);
    if follower.take(&first.map_err(|failure| failure.to_string())?)? == Then::Over {
        return Ok(());
    }
    let mut pause = SHORTEST_PAUSE;
    loop {
        let begin = Instant::now();
        match follower.poll(WAIT) {
            Ok(told) => {
                let is_hasty = told.status == 204 && begin.elapsed() < SOON;
                if follower.take(&told)? == Then::Over {
                    return Ok(());
                }
                if !is_hasty {
                    pause = SHORTEST_PAUSE;
                    continue;
                }
            }
            // The server has lost something, or it is another one.
            Err(Failure::No { reason, cursor: Some(cursor) }) => {
                eprintln!("bine: {reason}");
                follower.after = cursor;
            }
            Err(Failure::No { reason, cursor: None }) => return Err(reason),
            Err(Failure::Away(reason)) if pause == SHORTEST_PAUSE => {
                eprintln!("bine: {reason}; it is tried again");
            }
            Err(Failure::Away(_)) => {}
        }
        thread::park_timeout(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

impl Follower<'_> {
    fn poll(&self, wait: u64) -> Result<Told, Failure> {
        let Self { names, after, .. } = self;
        let limit = self.left.map(|left| format!("&limit={}", left.min(1000))).unwrap_or_default();
        let after = encoded(after, b"");
        self.server.get(&format!("/channels?{names}&after={after}&wait={wait}&gap=allow{limit}"))
    }

    /// Prints an answer and goes on behind it.
    fn take(&mut self, told: &Told) -> Result<Then, String> {
        if let Some(lost) = field(&told.head, "Cursor-Lost") {
            eprintln!("bine: messages up to {lost} are gone");
        }
        let cursor = field(&told.head, "Cursor").ok_or("the server's answer has no cursor")?;
        cursor.clone_into(&mut self.after);
        if !told.body.is_empty() {
            let unreadable = |error| format!("the server's answer is not whole: {error}");
            let messages: Vec<&RawValue> =
                serde_json::from_slice(&told.body).map_err(unreadable)?;
            let mut out = io::stdout().lock();
            let is_terminal = out.is_terminal();
            for message in &messages {
                let text = self.text(message).map_err(unreadable)?;
                // Whoever publishes must not have the keys of whoever reads.
                let text = if is_terminal { harmless(&text) } else { Cow::Borrowed(&*text) };
                writeln!(out, "{text}").map_err(|error| format!("cannot print: {error}"))?;
            }
            out.flush().map_err(|error| format!("cannot print: {error}"))?;
            self.left = self.left.map(|left| left.saturating_sub(messages.len() as u64));
        }
        let is_closed = field(&told.head, "Stream-Closed") == Some("true");
        Ok(if is_closed || self.left == Some(0) { Then::Over } else { Then::On })
    }

    /// What is printed of a message.
    fn text(&self, message: &RawValue) -> Result<String, serde_json::Error> {
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
