//! Messages, before and after they have a position.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::cursor::Sequence;
use crate::json;
use crate::refused::Refused;
use crate::settings::Limits;

/// The media type of a message if neither the message nor its channel sets one.
pub(crate) const DEFAULT_TYPE: &str = "application/octet-stream";

/// The names and values of a message's headers.
pub type Headers = Box<[(Box<str>, Box<str>)]>;

/// A publication, which the hub accepts or rejects as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    /// The messages, in order.
    pub messages: Vec<Draft>,
    /// The channels to close after the messages.
    pub close: Vec<Arc<str>>,
    /// The producer and its sequence number, for the detection of duplicates. Allowed for a single
    /// channel only.
    pub producer: Option<Producer>,
    /// A mark that must be greater than the channel's last one, compared byte by byte. Allowed for
    /// a single channel only.
    pub mark: Option<Arc<str>>,
}

/// A message that has no position yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// The names of its channels. The message has the same position in every channel.
    pub channels: Vec<Arc<str>>,
    /// The content of the message.
    pub content: Content,
}

/// The content of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The media type of the body; `None` for that of the channel.
    pub content_type: Option<Arc<str>>,
    /// The event name, for views that have one.
    pub event: Option<Arc<str>>,
    /// The publisher's own id. A channel accepts an id once within a window of time.
    pub id: Option<Arc<str>>,
    /// The headers.
    pub headers: Headers,
    /// The body.
    pub body: Arc<[u8]>,
}

/// A producer of the Durable Streams protocol. The hub detects its duplicates by sequence number; a
/// later epoch replaces an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer {
    /// Its name.
    pub id: Arc<str>,
    /// Its epoch: the number of its current run.
    pub epoch: u64,
    /// The number of this publication in the epoch, starting at 0.
    pub sequence: u64,
}

/// A message that has its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The position in the order of all messages.
    pub sequence: Sequence,
    /// The time of publication in milliseconds since 1970; never less than that of an earlier
    /// message.
    pub time: u64,
    /// The names of its channels. A follower of any one channel may see the whole list.
    pub channels: Arc<[Arc<str>]>,
    /// The media type of the body.
    pub content_type: Arc<str>,
    /// The event name.
    pub event: Option<Arc<str>>,
    /// The publisher's own id.
    pub id: Option<Arc<str>>,
    /// The headers.
    pub headers: Headers,
    /// The body.
    pub body: Arc<[u8]>,
    /// The form in which text formats can carry the body.
    pub format: BodyFormat,
    /// The publisher whose quota the message counts against; `None` for the program itself.
    pub publisher: Option<Arc<str>>,
}

/// The form in which a text format can carry a body. The hub determines it once, at publication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyFormat {
    /// Only in base64: the type is not a text type, or the body is not UTF-8.
    #[default]
    Binary,
    /// As UTF-8 text.
    Text,
    /// As a valid JSON value.
    Json,
}

impl Message {
    /// Returns the bytes that the message counts for in limits: its content and a fixed overhead.
    pub fn weight(&self) -> usize {
        let texts = [self.event.as_deref(), self.id.as_deref()];
        let texts: usize = texts.into_iter().flatten().map(str::len).sum();
        let headers: usize =
            self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        size_of::<Self>() + self.body.len() + headers + texts
    }

    /// Returns the memory that the message takes in one queue, with its list of channels.
    pub(crate) fn footprint(&self) -> u64 {
        (self.weight() + self.channels.len() * size_of::<Arc<str>>()) as u64
    }
}

impl Message {
    /// Returns the memory that the message takes if its body is truncated to `bytes`.
    pub(crate) fn footprint_truncated(&self, bytes: u64) -> u64 {
        let body = self.body.len() as u64;
        self.footprint() - body + bytes.min(body)
    }

    /// Returns a copy whose body is truncated to `bytes`.
    pub(crate) fn truncated(&self, bytes: usize) -> Self {
        let body = &self.body[..bytes.min(self.body.len())];
        Self { body: body.into(), format: BodyFormat::of(&self.content_type, body), ..self.clone() }
    }
}

impl Content {
    /// Returns the weight of a message with this content; see [`Message::weight`].
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
    /// Returns the format of a body of this type.
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

/// Checks that a text is not empty, is within the limit and contains no control character.
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

/// Returns a channel name made of enough random bits that guessing it is hopeless.
pub fn name_from_bits(random: u128) -> String {
    // No vowels, and no digits that look like letters, so that no name is a word by accident.
    const ALPHABET: &[u8; 32] = b"0123456789bcdfghjkmnpqrstvwxyzBC";
    (0..26).map(|at| char::from(ALPHABET[(random >> (at * 5) & 31) as usize])).collect()
}

/// Whether [`View::Multipart`](crate::View::Multipart) writes this header itself.
fn is_reserved_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("content-") || ["cursor", "event", "message-id"].contains(&&name[..])
}

/// Whether a character is C0, DEL, C1 or one of the two separators that some clients treat as a
/// line end.
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
        let names: BTreeSet<String> = (0..128).map(|bit| name_from_bits(1 << bit)).collect();
        assert_eq!(names.len(), 128);
        assert!(names.iter().all(|name| name.len() == 26));
    }
}
