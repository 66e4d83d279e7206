//! Decides what a request to a Durable Streams resource asks for, and refuses what is not written as it should be.

use std::str::FromStr;
use std::sync::Arc;

use bine_http::{Head, query};
use bine_push::{BodyFormat, Content, Cursor, Draft, Durability, Expiry, Producer, Retention};
use serde_json::value::RawValue;

use crate::channels::batch::{Batch, MOST};
use crate::channels::instant;
use crate::channels::media_type::essence;

/// Where a read begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Offset {
    Beginning,
    Now,
    At(Cursor),
}

/// Whether a read waits, and how it is then answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    CatchUp,
    LongPoll,
    Events,
}

/// A read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) offset: Offset,
    pub(super) mode: Mode,
    /// The turn of the last answer.
    pub(super) turn: Option<u64>,
}

/// What a fork is made of.
#[derive(Debug)]
pub(super) struct Forked {
    /// The name of the other resource.
    pub(super) from: Arc<str>,
    pub(super) offset: Option<Offset>,
    /// So many messages of JSON, or bytes of anything else, behind that.
    pub(super) beyond: u64,
}

/// The highest number that JavaScript counts to.
const MOST_NUMBER: u64 = (1 << 53) - 1;
/// A body that is no JSON is kept in pieces, since what is read at once is bounded by them.
const PIECE: usize = 1 << 20;

impl Read {
    /// All that is there.
    pub(super) const PLAIN: Self =
        Self { offset: Offset::Beginning, mode: Mode::CatchUp, turn: None };

    pub(super) fn of(head: &Head<'_>) -> Result<Self, String> {
        let (mut offset, mut mode, mut turn) = (None, Mode::CatchUp, None);
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
                turn = value.parse().ok();
            }
        }
        if offset.is_none() && mode != Mode::CatchUp {
            return Err("whoever follows says from where on: `offset`".to_owned());
        }
        Ok(Self { offset: offset.unwrap_or(Offset::Beginning), mode, turn })
    }
}

/// A place as it was told by `Stream-Next-Offset`, or a word for one.
pub(super) fn offset_of(text: &str) -> Result<Offset, String> {
    match text {
        "now" => Ok(Offset::Now),
        // The second is what lies before everything on the protocol's own server: its tools say it.
        "-1" | "0000000000000000_0000000000000000" => Ok(Offset::Beginning),
        _ => match Cursor::from_str(text) {
            Ok(cursor) => Ok(Offset::At(cursor)),
            Err(fault) => Err(format!("`{text}` is no offset: {fault}, or -1, or now")),
        },
    }
}

/// When the resource is to go by itself, if that is said. `usual` makes of milliseconds what `Stream-TTL` means alone.
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
            let time = str::from_utf8(time).ok().and_then(instant::read);
            let wrong = "Stream-Expires-At is a time like 2026-11-20T21:00:00Z";
            Ok(Some(Expiry::At(time.ok_or(wrong)?)))
        }
        (None, None) => Ok(None),
    }
}

/// Which messages stay, if that is said: `messages=1000, bytes=1048576, age=3600`, the age in seconds, each of which may
/// be `unlimited`, as all together may.
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

/// When a publication is acknowledged, if that is said.
pub(super) fn durability(head: &Head<'_>) -> Result<Option<Durability>, String> {
    match head.field("Stream-Durability") {
        None => Ok(None),
        Some(b"memory") => Ok(Some(Durability::Memory)),
        Some(b"interval") => Ok(Some(Durability::Interval)),
        Some(b"commit") => Ok(Some(Durability::Commit)),
        Some(_) => Err("Stream-Durability is memory, interval or commit".to_owned()),
    }
}

/// Whether the resource is to be closed. Any other word than `true` says nothing.
pub(super) fn closes(head: &Head<'_>) -> bool {
    head.field("Stream-Closed").is_some_and(|word| word.eq_ignore_ascii_case(b"true"))
}

/// What the resource begins with, if it is to be a fork. `root` is where resources lie.
pub(super) fn forked(head: &Head<'_>, root: &str) -> Result<Option<Forked>, String> {
    let (offset, beyond) = (head.field_text("Stream-Fork-Offset"), "Stream-Fork-Sub-Offset");
    let Some(from) = head.field("Stream-Forked-From") else {
        return if offset.is_some() || head.field(beyond).is_some() {
            Err("a fork says Stream-Forked-From: the path of the other stream".to_owned())
        } else {
            Ok(None)
        };
    };
    let from = str::from_utf8(from).map_err(|_| "Stream-Forked-From is no path")?;
    let name = from.strip_prefix(root).unwrap_or(from.trim_start_matches('/'));
    // Decoded as a word of a query, in which these three mean something; here they are themselves.
    let name = name.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    let name = query::pairs(&name).next().map(|(name, _)| name.decode());
    let name = name.transpose().map_err(|_| "Stream-Forked-From is no path")?.unwrap_or_default();
    if name.is_empty() {
        return Err("Stream-Forked-From is no path of a stream".to_owned());
    }
    let beyond = match head.field(beyond) {
        Some(number) => decimal(number).ok_or("Stream-Fork-Sub-Offset is a whole number")?,
        None => 0,
    };
    let offset = offset.map(offset_of).transpose()?;
    Ok(Some(Forked { from: (&*name).into(), offset, beyond }))
}

/// Who publishes, so that a repetition is known.
pub(super) fn producer(head: &Head<'_>) -> Result<Option<Producer>, String> {
    let id = head.field("Producer-Id");
    let (epoch, sequence) = (head.field("Producer-Epoch"), head.field("Producer-Seq"));
    match (id, epoch, sequence) {
        (None, None, None) => Ok(None),
        (Some(id), Some(epoch), Some(sequence)) => {
            let id = str::from_utf8(id).ok().filter(|id| !id.is_empty());
            let number = |number| decimal(number).filter(|number| *number <= MOST_NUMBER);
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

/// The messages of a body: the elements of an array of JSON, or the bytes.
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
    let Batch(values): Batch<&RawValue, MOST> =
        serde_json::from_slice(body).map_err(|error| format!("the body is no JSON: {error}"))?;
    Ok(values.into_iter().map(|value| draft(value.get().as_bytes())).collect())
}

/// A body in pieces that end with whole letters, if it is text.
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

/// Whether messages are JSON values, by the protocol's rules.
pub(super) fn is_json(kind: &str) -> bool {
    essence(kind) == "application/json"
}

/// Digits without anything before them, as there is only one way to write a number.
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
    fn a_number_is_written_in_one_way() {
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
    fn an_array_is_as_many_messages_as_it_has_elements_and_no_more() {
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
        fn the_pieces_of_a_body_are_the_body(length in PIECE - 5..PIECE + 5, cut in 0..4_usize) {
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
