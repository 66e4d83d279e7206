//! Decides what a message is, before and after it has its place.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::cursor::Sequence;
use crate::json;
use crate::refused::Refused;
use crate::settings::Limits;

/// The type of a message that says none, in a channel that says none.
pub(crate) const DEFAULT_TYPE: &str = "application/octet-stream";

/// Names and values that go with a body.
pub type Headers = Box<[(Box<str>, Box<str>)]>;

/// A publication: it is taken whole or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    /// Its messages, in order.
    pub messages: Vec<Draft>,
    /// The channels that close behind them.
    pub close: Vec<Arc<str>>,
    /// Who publishes, so that a repetition is known. Only for one channel.
    pub producer: Option<Producer>,
    /// A mark that must be higher, byte by byte, than the one before. Only for one channel.
    pub mark: Option<Arc<str>>,
}

/// A message that has no place yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// Its channels. It has one sequence in all of them.
    pub channels: Vec<Arc<str>>,
    /// What a message carries.
    pub content: Content,
}

/// What a message carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The media type of the body; `None`: the channel's.
    pub content_type: Option<Arc<str>>,
    /// The name of the event, for views that have such.
    pub event: Option<Arc<str>>,
    /// A publisher's own id: within a window of time a channel takes it once.
    pub id: Option<Arc<str>>,
    /// Names and values.
    pub headers: Headers,
    /// The body.
    pub body: Arc<[u8]>,
}

/// A publisher whose repetitions are known by number, and who can be succeeded but not imitated: a producer of the
/// Durable Streams protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer {
    /// Its name.
    pub id: Arc<str>,
    /// Which life of it.
    pub epoch: u64,
    /// Which publication of that life, from 0.
    pub sequence: u64,
}

/// A message in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its place in the order of all messages.
    pub sequence: Sequence,
    /// When it was published, in milliseconds since 1970; never before an earlier message.
    pub time: u64,
    /// The names of its channels. Whoever follows one of them may see them all.
    pub channels: Arc<[Arc<str>]>,
    /// The media type of the body.
    pub content_type: Arc<str>,
    /// The name of the event.
    pub event: Option<Arc<str>>,
    /// The publisher's own id.
    pub id: Option<Arc<str>>,
    /// Names and values.
    pub headers: Headers,
    /// The body.
    pub body: Arc<[u8]>,
    /// How the body can be shown in text.
    pub format: BodyFormat,
    /// Whose quota it counts against; `None`: the program's own.
    pub publisher: Option<Arc<str>>,
}

/// How a body can be shown where there is only text. Decided once, when it is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyFormat {
    /// Not at all: its type is none of text, or it is not UTF-8.
    #[default]
    Binary,
    /// As UTF-8.
    Text,
    /// As a JSON value that was checked.
    Json,
}

impl Message {
    /// What it counts for where bytes are bounded: all that it carries, and something for the rest.
    pub fn weight(&self) -> usize {
        let texts = [self.event.as_deref(), self.id.as_deref()];
        let texts: usize = texts.into_iter().flatten().map(str::len).sum();
        let headers: usize =
            self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        size_of::<Self>() + self.body.len() + headers + texts
    }

    /// The memory that it takes in one queue, with the list of its channels.
    pub(crate) fn footprint(&self) -> u64 {
        (self.weight() + self.channels.len() * size_of::<Arc<str>>()) as u64
    }
}

impl Message {
    /// The memory that it takes with the begin of its body alone.
    pub(crate) fn footprint_truncated(&self, bytes: u64) -> u64 {
        let body = self.body.len() as u64;
        self.footprint() - body + bytes.min(body)
    }

    /// The same with the begin of its body alone.
    pub(crate) fn truncated(&self, bytes: usize) -> Self {
        let body = &self.body[..bytes.min(self.body.len())];
        Self { body: body.into(), format: BodyFormat::of(&self.content_type, body), ..self.clone() }
    }
}

impl Content {
    /// What a message of it counts for; see [`Message::weight`].
    pub(crate) fn weight(&self) -> usize {
        let texts = [self.event.as_deref(), self.id.as_deref()];
        let texts: usize = texts.into_iter().flatten().map(str::len).sum();
        let headers: usize =
            self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        size_of::<Message>() + self.body.len() + headers + texts
    }

    /// Checks each part against the limits.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), Refused> {
        let texts = [
            ("the type", &self.content_type, ""),
            ("the event's name", &self.event, ";"),
            ("the message's id", &self.id, ""),
        ];
        for (what, text, forbidden) in texts {
            if let Some(text) = text {
                check_text(what, text, limits.attribute)?;
                if text.contains(|char| forbidden.contains(char)) {
                    return Err(Refused::Malformed(what));
                }
            }
        }
        let mut bytes = 0;
        for (name, value) in &self.headers {
            bytes += name.len() + value.len();
            let is_token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            let is_name =
                !name.is_empty() && name.bytes().all(is_token) && !is_reserved_header(name);
            if !is_name || value.contains(is_control) {
                return Err(Refused::Malformed("a header"));
            }
        }
        if bytes > limits.headers {
            return Err(Refused::LimitExceeded {
                quantity: "bytes of headers",
                limit: limits.headers as u64,
            });
        }
        if self.body.len() > limits.body {
            return Err(Refused::LimitExceeded {
                quantity: "bytes of a body",
                limit: limits.body as u64,
            });
        }
        Ok(())
    }
}

impl BodyFormat {
    /// The form of a body of this type.
    pub fn of(content_type: &str, body: &[u8]) -> Self {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let essence = essence.to_ascii_lowercase();
        let is_json = essence == "application/json" || essence.ends_with("+json");
        if is_json && json::is_value(body) {
            Self::Json
        } else if is_json || is_text(&essence) {
            if core::str::from_utf8(body).is_ok() { Self::Text } else { Self::Binary }
        } else {
            Self::Binary
        }
    }
}

/// A word: not empty, not too long, no control character.
pub(crate) fn check_text(what: &'static str, text: &str, limit: usize) -> Result<(), Refused> {
    if text.is_empty() {
        Err(Refused::Empty(what))
    } else if text.len() > limit {
        Err(Refused::LimitExceeded { quantity: what, limit: limit as u64 })
    } else if text.contains(is_control) {
        Err(Refused::Malformed(what))
    } else {
        Ok(())
    }
}

/// A name for a channel that was given none, of as many random bits as make guessing it hopeless.
pub fn random_name(random: u128) -> String {
    // No vowels and no digits that look like letters: no name is a word by accident.
    const ALPHABET: &[u8; 32] = b"0123456789bcdfghjkmnpqrstvwxyzBC";
    (0..26).map(|at| char::from(ALPHABET[(random >> (at * 5) & 31) as usize])).collect()
}

/// A view in parts writes these itself.
fn is_reserved_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("content-") || ["cursor", "event", "message-id"].contains(&&name[..])
}

/// C0, DEL, C1 and the two separators that some readers take for the end of a line.
fn is_control(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')
}

fn is_text(essence: &str) -> bool {
    essence.starts_with("text/")
        || essence.ends_with("+xml")
        || matches!(
            essence,
            "application/xml"
                | "application/javascript"
                | "application/ecmascript"
                | "application/x-ndjson"
                | "application/ndjson"
                | "application/x-www-form-urlencoded"
        )
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    #[test]
    fn detects_body_format_from_type_and_bytes() {
        for (content_type, body, format) in [
            ("application/json", &b"{\"a\": [1, 2]}"[..], BodyFormat::Json),
            ("application/problem+JSON; charset=utf-8", b"null", BodyFormat::Json),
            ("application/json", b"{\"a\"", BodyFormat::Text),
            ("application/json", b"\xff", BodyFormat::Binary),
            ("text/plain", b"a", BodyFormat::Text),
            ("text/plain", b"\xff", BodyFormat::Binary),
            ("application/octet-stream", b"a", BodyFormat::Binary),
            ("image/svg+xml", b"<svg/>", BodyFormat::Text),
        ] {
            assert_eq!(BodyFormat::of(content_type, body), format, "{content_type}");
        }
    }

    #[test]
    fn rejects_content_that_would_break_a_view() {
        let check = |content: Content| content.check(&Limits::default()).err();
        let event = Content { event: Some("a;base64".into()), ..Content::default() };
        assert_eq!(check(event), Some(Refused::Malformed("the event's name")));
        let id = Content { id: Some("a\nb".into()), ..Content::default() };
        assert_eq!(check(id), Some(Refused::Malformed("the message's id")));
        for (name, value) in [("a b", "c"), ("", "c"), ("a", "b\r\nc"), ("Content-Length", "1")] {
            let headers = Box::from([(name.into(), value.into())]);
            let headers = Content { headers, ..Content::default() };
            assert_eq!(check(headers), Some(Refused::Malformed("a header")));
        }
    }

    #[test]
    fn generates_distinct_names_for_close_numbers() {
        let names: BTreeSet<String> = (0..128).map(|bit| random_name(1 << bit)).collect();
        assert_eq!(names.len(), 128);
        assert!(names.iter().all(|name| name.len() == 26));
    }
}
