//! Parses a complete request head in one pass over its bytes.

use crate::fault::PeerFault;
use crate::fields::FieldSummary;
use crate::head::{Flags, Head, HeadIndex, Span, Version};
use crate::limits::Limits;
use crate::method::Method;
use crate::scan;
use crate::target::{self, Target};

/// Parses the head at the front. Returns `None` if it is incomplete or a line is malformed.
///
/// [`HeadParser`](crate::head_parser::HeadParser) then decides which of the two applies, so a head
/// has the same result however its bytes were split over reads. For the same reason, a fault in the
/// meaning of a field counts only when all lines are well-formed.
#[inline]
pub(crate) fn read<'b>(bytes: &'b [u8], limits: &Limits) -> Option<Result<Head<'b>, PeerFault>> {
    let (mut index, mut at) = request_line(bytes, limits)?;
    let mut fields = FieldSummary::default();
    let mut summary = Ok(());
    // All fields, and the empty line that ends them. An inclusive range is slower.
    let lines = u32::from(limits.fields) + 1;
    for _ in 0..lines {
        let line = &bytes[at..];
        if let [b'\r', b'\n', ..] = line {
            if let Err(fault) = summary.and_then(|()| fields.finish(&mut index, limits)) {
                return Some(Err(fault));
            }
            return Some(Ok(Head::from_parts(&bytes[..at + 2], index)));
        }
        let (name, value) = field(line)?;
        let place = at + name.len() + 1;
        if summary.is_ok() {
            summary = fields.add(name, value, place);
        }
        at = place + value.len() + 2;
    }
    None
}

/// Parses the request line (RFC 9112 section 3). Returns the index so far and the position of the
/// first field.
#[inline]
fn request_line(bytes: &[u8], limits: &Limits) -> Option<(HeadIndex, usize)> {
    let method = Method::parse_prefix(bytes).filter(|&method| method != Method::Connect)?;
    let start = method.as_str().len() + 1;
    let front = target::scan_target(&bytes[start..]);
    let end = start + front.length;
    let version = if bytes[end..].starts_with(b" HTTP/1.1\r\n") {
        Version::Http11
    } else if bytes[end..].starts_with(b" HTTP/1.0\r\n") {
        Version::Http10
    } else {
        return None;
    };
    if front.length > limits.target as usize {
        return None;
    }
    let Target { path, authority, is_plain } =
        target::split(&bytes[start..end], front, method).ok()?;
    let mut index = HeadIndex {
        content_length: 0,
        known: 0,
        target_end: end as u32,
        path: path.shifted(start),
        authority: if authority == Span::default() { authority } else { authority.shifted(start) },
        method,
        version,
        flags: Flags::default(),
    };
    index.flags.set(Flags::PLAIN_PATH, is_plain);
    Some((index, end + " HTTP/1.1\r\n".len()))
}

/// Returns the name and the untrimmed value of the field line at the front, if it is well-formed
/// (RFC 9112 section 5).
#[inline]
fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = line.split_at(scan::token_length(line));
    let [b':', after_colon @ ..] = rest else {
        return None;
    };
    let mut end = scan::find_control(after_colon)?;
    while after_colon[end] == b'\t' {
        end += 1 + scan::find_control(&after_colon[end + 1..])?;
    }
    let (value, rest) = after_colon.split_at(end);
    (!name.is_empty() && rest.starts_with(b"\r\n")).then_some((name, value))
}
