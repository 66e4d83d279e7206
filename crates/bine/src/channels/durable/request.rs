//! Parses requests to Durable Streams resources, and rejects malformed ones.

use std::str::FromStr;
use std::sync::Arc;

use bine_http::{Head, query};
use bine_push::{BodyFormat, Content, Cursor, Draft, Durability, Expiry, Producer, Retention};
use serde_json::value::RawValue;

use crate::channels::batch::{Batch, MAX_MESSAGES};
use crate::channels::media_type::essence;
use crate::channels::timestamp;

/// The position where a read begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Offset {
    Beginning,
    Now,
    At(Cursor),
}

/// How a read waits for new messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    CatchUp,
    LongPoll,
    Events,
}

/// A parsed read request.
#[derive(Debug)]
pub(super) struct ReadRequest {
    pub(super) offset: Offset,
    pub(super) mode: Mode,
    /// The `Stream-Cursor` of the previous response.
    pub(super) stream_cursor: Option<u64>,
}

/// The source of a fork.
#[derive(Debug)]
pub(super) struct ForkSource {
    /// The name of the source channel.
    pub(super) from: Arc<str>,
    pub(super) offset: Option<Offset>,
    /// The distance from the offset, in messages of a JSON stream or bytes of any other.
    pub(super) sub_offset: u64,
}

/// The highest integer that JavaScript represents exactly.
const MAX_NUMBER: u64 = (1 << 53) - 1;
/// Maximum bytes of a message. Larger bodies are split, since one read returns whole messages.
const PIECE: usize = 1 << 20;

impl ReadRequest {
    /// Reads all existing messages.
    pub(super) const PLAIN: Self =
        Self { offset: Offset::Beginning, mode: Mode::CatchUp, stream_cursor: None };

    pub(super) fn of(head: &Head<'_>) -> Result<Self, String> {
        let (mut offset, mut mode, mut stream_cursor) = (None, Mode::CatchUp, None);
        for (name, value) in query::pairs(head.query().unwrap_or_default()) {
            let decoded = value.decode();
            let value = decoded.map_err(|_| "the query is not encoded as it should be")?;
            if name.is("offset") {
                if offset.is_some() {
                    return Err("there is more than one `offset`".to_owned());
                }
                offset = Some(offset_of(&value)?);
            } else if name.is("live") {
                mode = match &*value {
                    "long-poll" => Mode::LongPoll,
                    "sse" => Mode::Events,
                    _ => return Err(format!("`live` is long-poll or sse, not `{value}`")),
                };
            } else if name.is("cursor") {
                stream_cursor = value.parse().ok();
            }
        }
        if offset.is_none() && mode != Mode::CatchUp {
            return Err("whoever follows says from where on: `offset`".to_owned());
        }
        Ok(Self { offset: offset.unwrap_or(Offset::Beginning), mode, stream_cursor })
    }
}

/// Parses an offset: the value of a `Stream-Next-Offset`, or a keyword.
pub(super) fn offset_of(text: &str) -> Result<Offset, String> {
    match text {
        "now" => Ok(Offset::Now),
        // The second form is the beginning on the protocol's reference server; its tools send it.
        "-1" | "0000000000000000_0000000000000000" => Ok(Offset::Beginning),
        _ => match Cursor::from_str(text) {
            Ok(cursor) => Ok(Offset::At(cursor)),
            Err(fault) => Err(format!("`{text}` is no offset: {fault}, or -1, or now")),
        },
    }
}

/// Parses the expiry of a resource, if given. `usual` converts the milliseconds of a `Stream-TTL`
/// without `Stream-TTL-Of`.
pub(super) fn expiry(head: &Head<'_>, usual: fn(u64) -> Expiry) -> Result<Option<Expiry>, String> {
    let of = match (head.field("Stream-TTL-Of"), head.field("Stream-TTL")) {
        (None, _) => usual,
        (Some(b"publishers"), Some(_)) => Expiry::AfterPublish,
        (Some(b"everybody"), Some(_)) => Expiry::AfterActivity,
        (Some(_), None) => return Err("Stream-TTL-Of goes with Stream-TTL".to_owned()),
        _ => return Err("Stream-TTL-Of is publishers or everybody".to_owned()),
    };
    match (head.field("Stream-TTL"), head.field("Stream-Expires-At")) {
        (Some(_), Some(_)) => Err("Stream-TTL or Stream-Expires-At, not both".to_owned()),
        (Some(seconds), None) => {
            let milliseconds = decimal(seconds).and_then(|seconds| seconds.checked_mul(1000));
            let wrong = "Stream-TTL is a number of seconds, like 3600";
            Ok(Some(of(milliseconds.ok_or(wrong)?)))
        }
        (None, Some(time)) => {
            let time = str::from_utf8(time).ok().and_then(timestamp::read);
            let wrong = "Stream-Expires-At is a time like 2026-11-20T21:00:00Z";
            Ok(Some(Expiry::At(time.ok_or(wrong)?)))
        }
        (None, None) => Ok(None),
    }
}

/// Parses a retention such as `messages=1000, bytes=1048576, age=3600`, if given. The age is in
/// seconds; `unlimited` may replace each number or the whole value.
pub(super) fn retention(head: &Head<'_>) -> Result<Option<Retention>, String> {
    const WRONG: &str = "Stream-Retention is like messages=1000, bytes=1048576, age=3600 (seconds), or some of these; \
                         `unlimited` in place of a number or of all keeps what the channel's quota allows";
    let Some(said) = head.field("Stream-Retention") else { return Ok(None) };
    if said == b"unlimited" {
        return Ok(Some(Retention::UNLIMITED));
    }
    let mut retention = Retention::default();
    for limit in str::from_utf8(said).map_err(|_| WRONG)?.split(',') {
        let (name, number) = limit.trim().split_once('=').ok_or(WRONG)?;
        let number = match number {
            "unlimited" => 0,
            _ => decimal(number.as_bytes()).filter(|number| *number > 0).ok_or(WRONG)?,
        };
        match name {
            "messages" => retention.messages = number,
            "bytes" => retention.bytes = number,
            "age" => retention.age = number.checked_mul(1000).ok_or(WRONG)?,
            _ => return Err(WRONG.to_owned()),
        }
    }
    Ok(Some(retention))
}

/// Parses the durability that a publication waits for, if given.
pub(super) fn durability(head: &Head<'_>) -> Result<Option<Durability>, String> {
    match head.field("Stream-Durability") {
        None => Ok(None),
        Some(b"memory") => Ok(Some(Durability::Memory)),
        Some(b"interval") => Ok(Some(Durability::Interval)),
        Some(b"commit") => Ok(Some(Durability::Commit)),
        Some(_) => Err("Stream-Durability is memory, interval or commit".to_owned()),
    }
}

/// Whether the request closes the resource. Values other than `true` are ignored.
pub(super) fn closes(head: &Head<'_>) -> bool {
    head.field("Stream-Closed").is_some_and(|word| word.eq_ignore_ascii_case(b"true"))
}

/// Parses the source of a fork, if given. `root` is the path of all resources.
pub(super) fn forked(head: &Head<'_>, root: &str) -> Result<Option<ForkSource>, String> {
    let (offset, sub_offset) = (head.field_text("Stream-Fork-Offset"), "Stream-Fork-Sub-Offset");
    let Some(from) = head.field("Stream-Forked-From") else {
        return if offset.is_some() || head.field(sub_offset).is_some() {
            Err("a fork says Stream-Forked-From: the path of the other stream".to_owned())
        } else {
            Ok(None)
        };
    };
    let from = str::from_utf8(from).map_err(|_| "Stream-Forked-From is no path")?;
    let name = from.strip_prefix(root).unwrap_or(from.trim_start_matches('/'));
    // Decoded as a query parameter; these three characters have a meaning only there.
    let name = name.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    let name = query::pairs(&name).next().map(|(name, _)| name.decode());
    let name = name.transpose().map_err(|_| "Stream-Forked-From is no path")?.unwrap_or_default();
    if name.is_empty() {
        return Err("Stream-Forked-From is no path of a stream".to_owned());
    }
    let sub_offset = match head.field(sub_offset) {
        Some(number) => decimal(number).ok_or("Stream-Fork-Sub-Offset is a whole number")?,
        None => 0,
    };
    let offset = offset.map(offset_of).transpose()?;
    Ok(Some(ForkSource { from: (&*name).into(), offset, sub_offset }))
}

/// Parses the producer of an idempotent publication, if given.
pub(super) fn producer(head: &Head<'_>) -> Result<Option<Producer>, String> {
    let id = head.field("Producer-Id");
    let (epoch, sequence) = (head.field("Producer-Epoch"), head.field("Producer-Seq"));
    match (id, epoch, sequence) {
        (None, None, None) => Ok(None),
        (Some(id), Some(epoch), Some(sequence)) => {
            let id = str::from_utf8(id).ok().filter(|id| !id.is_empty());
            let number = |number| decimal(number).filter(|number| *number <= MAX_NUMBER);
            let wrong = "Producer-Epoch and Producer-Seq are whole numbers up to 2^53-1";
            Ok(Some(Producer {
                id: id.ok_or("Producer-Id must not be empty")?.into(),
                epoch: number(epoch).ok_or(wrong)?,
                sequence: number(sequence).ok_or(wrong)?,
            }))
        }
        _ => Err("Producer-Id, Producer-Epoch and Producer-Seq go together".to_owned()),
    }
}

/// Splits a body into messages: the elements of a JSON array, or byte ranges.
pub(super) fn drafts(name: &Arc<str>, kind: &str, body: &[u8]) -> Result<Vec<Draft>, String> {
    let draft = |body: &[u8]| Draft {
        channels: vec![Arc::clone(name)],
        content: Content { body: body.into(), ..Content::default() },
    };
    if !is_json(kind) {
        return Ok(pieces(body).map(draft).collect());
    } else if body.is_empty() {
        return Ok(Vec::new());
    } else if BodyFormat::of("application/json", body) != BodyFormat::Json {
        return Err("the body is no JSON".to_owned());
    }
    if body.trim_ascii_start().first() != Some(&b'[') {
        return Ok(vec![draft(body.trim_ascii())]);
    }
    let Batch(values): Batch<&RawValue, MAX_MESSAGES> =
        serde_json::from_slice(body).map_err(|error| format!("the body is no JSON: {error}"))?;
    Ok(values.into_iter().map(|value| draft(value.get().as_bytes())).collect())
}

/// Splits a body without splitting a UTF-8 character.
fn pieces(mut body: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if body.is_empty() {
            return None;
        }
        let is_inside = |at: usize| body.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
        let end = (PIECE - 3..=PIECE).rev().find(|&at| !is_inside(at)).unwrap_or(PIECE);
        let (piece, rest) = body.split_at(end.min(body.len()));
        body = rest;
        Some(piece)
    })
}

/// Whether messages are JSON values (a rule of the protocol).
pub(super) fn is_json(kind: &str) -> bool {
    essence(kind) == "application/json"
}

/// Parses a decimal number without sign or leading zeros, so that each number has one form.
fn decimal(digits: &[u8]) -> Option<u64> {
    let is_plain = digits == b"0" || digits.first().is_some_and(|first| *first != b'0');
    (is_plain && digits.iter().all(u8::is_ascii_digit))
        .then(|| str::from_utf8(digits).ok()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parses_canonical_decimals_only() {
        for (digits, number) in [
            ("0", Some(0)),
            ("3600", Some(3600)),
            ("", None),
            ("00", None),
            ("+1", None),
            ("-1", None),
            ("1.0", None),
            ("1e3", None),
            ("18446744073709551616", None),
        ] {
            assert_eq!(decimal(digits.as_bytes()), number, "{digits}");
        }
    }

    #[test]
    fn splits_an_array_into_its_elements() {
        let bodies = |body: &str| {
            let drafts = drafts(&"a".into(), "application/json", body.as_bytes())?;
            let texts = drafts.iter().map(|draft| String::from_utf8_lossy(&draft.content.body));
            Ok::<_, String>(texts.collect::<Vec<_>>().join("|"))
        };
        assert_eq!(bodies("{\"a\": [1]}\n").unwrap(), "{\"a\": [1]}");
        assert_eq!(bodies(" [ [1, 2], \"b\" ,3]").unwrap(), "[1, 2]|\"b\"|3");
        assert_eq!(bodies("[]").unwrap(), "");
        assert!(bodies("[1").is_err());
        assert!(bodies("{} {}").is_err());
    }

    proptest! {
        #[test]
        fn body_pieces_concatenate_to_the_body(length in PIECE - 5..PIECE + 5, cut in 0..4_usize) {
            let mut body = vec![b'a'; cut];
            body.extend("\u{1f600}".bytes().cycle().take(length));
            let found: Vec<_> = pieces(&body).collect();
            prop_assert!(found.iter().all(|piece| piece.len() <= PIECE && !piece.is_empty()));
            if length % 4 == 0 {
                prop_assert!(found.iter().all(|piece| str::from_utf8(piece).is_ok()));
            }
            prop_assert_eq!(found.concat(), body);
        }
    }
}
