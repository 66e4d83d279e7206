//! Parses request targets into path, query and authority.

use crate::byte_class;
use crate::fault::PeerFault;
use crate::head::Span;
use crate::host;
use crate::method::Method;
use crate::path;
use crate::scan;

/// The parts of a request target, as ranges of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) path: Span,
    /// Empty unless the target is in absolute form.
    pub(crate) authority: Span,
    /// Whether the path needs no decoding and has no dot segments.
    pub(crate) is_plain: bool,
}

/// Classes of target bytes.
const FORBIDDEN: u8 = 1;
const PERCENT: u8 = 2;
const QUESTION: u8 = 4;
const DOT: u8 = 8;

/// The class of each byte. Browsers send `|`, `{`, `}`, `^`, `[`, `]` and the backtick unencoded,
/// so the server accepts them although RFC 3986 forbids them. It rejects bytes that could end a
/// line, a field or an attribute in other software.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'"' | b'<' | b'>' | b'\\' | b'#' | b' ' | 0x80.. => FORBIDDEN,
            control if byte_class::is_control(control) => FORBIDDEN,
            b'%' => PERCENT,
            b'?' => QUESTION,
            b'.' => DOT,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// The result of scanning a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetScan {
    /// The length of the prefix that consists of allowed bytes.
    pub(crate) length: usize,
    /// The position of the first `?`, or `length` if there is none.
    question: usize,
    /// The union of the classes of all bytes before the query.
    seen: u8,
}

/// Parses a request target (RFC 9112 section 3.2).
pub(crate) fn read(target: &[u8], method: Method) -> Result<Target, PeerFault> {
    let front = scan_target(target);
    if front.length < target.len() {
        return Err(PeerFault::TargetByte);
    }
    split(target, front, method)
}

/// Scans the bytes up to the first that is not allowed in a target. Examines each byte once.
#[inline]
pub(crate) fn scan_target(bytes: &[u8]) -> TargetScan {
    let class = |byte: u8| CLASSES[usize::from(byte)];
    let mut question = scan::prefix_length(bytes, |byte| class(byte) == 0);
    let mut seen = 0;
    for &byte in &bytes[question..] {
        if class(byte) & (FORBIDDEN | QUESTION) != 0 {
            break;
        }
        seen |= class(byte);
        question += 1;
    }
    let query = scan::prefix_length(&bytes[question..], |byte| class(byte) & FORBIDDEN == 0);
    TargetScan { length: question + query, question, seen }
}

/// Splits a target that was scanned completely.
#[inline]
pub(crate) fn split(target: &[u8], front: TargetScan, method: Method) -> Result<Target, PeerFault> {
    let TargetScan { question: end, seen, .. } = front;
    let authority = match target {
        [b'/', ..] => 0..0,
        b"*" if method == Method::Options => 0..0,
        _ => absolute(target)?,
    };
    let start = authority.end;
    let path = &target[start..end];
    // Most paths need no check of their segments.
    let may_need_decoding =
        seen & PERCENT != 0 || seen & DOT != 0 && path.windows(2).any(|pair| pair == b"/.");
    let is_plain = !may_need_decoding || path.is_empty() || path::check(path)?;
    Ok(Target {
        path: Span::from_range(start..end),
        authority: Span::from_range(authority),
        is_plain,
    })
}

/// Returns the range of the authority in an absolute-form target with the scheme `http` or `https`.
#[cold]
fn absolute(target: &[u8]) -> Result<core::ops::Range<usize>, PeerFault> {
    let start = [b"http://".as_slice(), b"https://"]
        .into_iter()
        .find(|scheme| {
            target.get(..scheme.len()).is_some_and(|front| front.eq_ignore_ascii_case(scheme))
        })
        .ok_or(PeerFault::TargetForm)?
        .len();
    let length = target[start..]
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?'))
        .unwrap_or(target.len() - start);
    let authority = start..start + length;
    if !host::is_valid(&target[authority.clone()]) {
        return Err(PeerFault::BadHost);
    }
    Ok(authority)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::{Target, read};
    use crate::head::Span;
    use crate::method::Method;

    fn check(method: Method, target: &str, expected: &str) {
        let part = |span: Span| String::from(&target[span.start as usize..span.end as usize]);
        let actual = match read(target.as_bytes(), method) {
            Ok(Target { path, authority, is_plain }) => format!(
                "{}|{}|{}",
                part(authority),
                part(path),
                if is_plain { "plain" } else { "coded" }
            ),
            Err(fault) => format!("{fault}"),
        };
        assert_eq!(actual, expected, "{target}");
    }

    #[test]
    fn distinguishes_target_forms() {
        check(Method::Get, "/a?b?c", "|/a|plain");
        check(Method::Get, "/a/./b?%", "|/a/./b|coded");
        check(Method::Get, "/a.b?/../", "|/a.b|plain");
        for path in ["/.", "/./", "/a/.", "/a/.."] {
            check(Method::Get, path, &format!("|{path}|coded"));
        }
        check(Method::Get, "HTTP://a.example:80/b", "a.example:80|/b|plain");
        check(Method::Get, "https://a?b", "a||plain");
        check(Method::Get, "http://a.example", "a.example||plain");
        check(Method::Options, "*", "|*|plain");
    }

    #[test]
    fn rejects_other_target_forms() {
        let message = "request target of no allowed form";
        for target in ["*", "a:80", "a", "", "?a", "ftp://a/", "http:/a", "*/", "javascript:1"] {
            check(Method::Get, target, message);
        }
        check(Method::Options, "**", message);
        check(Method::Get, "http://u@a/", "invalid host");
        check(Method::Get, "http:///a", "invalid host");
    }

    #[test]
    fn accepts_bytes_that_browsers_send() {
        check(Method::Get, "/|{}^[]`'!$&()*+,;=:@~-_", "|/|{}^[]`'!$&()*+,;=:@~-_|plain");
        for byte in ["\"", "<", ">", "\\", "#", " ", "\t", "\0", "\x7f", "\u{e4}"] {
            check(Method::Get, &format!("/{byte}"), "forbidden byte in request target");
            check(Method::Get, &format!("/?{byte}"), "forbidden byte in request target");
        }
    }
}
