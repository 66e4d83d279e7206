//! Decides what a head means that came whole, in one pass over its bytes.

use crate::fault::PeerFault;
use crate::fields::FieldSummary;
use crate::head::{Flags, Head, HeadIndex, Span, Version};
use crate::limits::Limits;
use crate::method::Method;
use crate::scan;
use crate::target::{self, Target};

/// Reads the head in front. `None` says: incomplete, or some line is malformed.
///
/// Only a check line by line says which, so a head gets the same answer however it was cut on its way. For
/// the same reason what a field means counts only when all lines are well formed.
#[inline]
pub(crate) fn read<'b>(bytes: &'b [u8], limits: &Limits) -> Option<Result<Head<'b>, PeerFault>> {
    let (mut index, mut at) = request_line(bytes, limits)?;
    let mut fields = FieldSummary::default();
    let mut summary = Ok(());
    for _ in 0..=limits.fields {
        let line = &bytes[at..];
        if let [b'\r', b'\n', ..] = line {
            let raw = &bytes[..at + 2];
            let finished = summary.and_then(|()| fields.finish(&mut index, limits));
            return Some(finished.map(|()| Head::from_parts(raw, index)));
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

/// Begins the index with a request line (RFC 9112 section 3); says where the first field begins.
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

/// The name and the untrimmed value of the well-formed field line in front (RFC 9112 section 5).
#[inline]
fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, behind) = line.split_at(scan::token_length(line));
    let [b':', behind @ ..] = behind else {
        return None;
    };
    let mut end = scan::find_control(behind)?;
    while behind[end] == b'\t' {
        end += 1 + scan::find_control(&behind[end + 1..])?;
    }
    let (value, behind) = behind.split_at(end);
    (!name.is_empty() && behind.starts_with(b"\r\n")).then_some((name, value))
}
