//! Splits lines and checks single field lines.

use core::ops::Range;

use crate::byte_class;
use crate::fault::PeerFault;
use crate::scan;

/// Returns the lines of checked bytes, without their CRLF.
pub(crate) fn lines(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let end = scan::find_line_feed(bytes)?;
        let line = &bytes[..end - 1];
        bytes = &bytes[end + 1..];
        Some(line)
    })
}

/// Trims spaces and tabs from both ends of a value.
pub(crate) fn trim(value: &[u8]) -> &[u8] {
    &value[inner(value)]
}

/// Returns the range of a value without the optional white space around it (OWS, RFC 9110 section
/// 5.6.3).
pub(crate) fn inner(value: &[u8]) -> Range<usize> {
    let is_inner = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = value.iter().position(is_inner).unwrap_or(value.len());
    let end = value.iter().rposition(is_inner).map_or(start, |last| last + 1);
    start..end
}

/// Removes the CRLF from a line that ends with a line feed.
pub(crate) fn end(line: &[u8]) -> Result<&[u8], PeerFault> {
    match line {
        [line @ .., b'\r', b'\n'] => Ok(line),
        _ => Err(PeerFault::BareLineFeed),
    }
}

/// Splits a well-formed field line into its name and its untrimmed value (RFC 9112 section 5).
pub(crate) fn field(line: &[u8]) -> Result<(&[u8], &[u8]), PeerFault> {
    if matches!(line, [b' ' | b'\t', ..]) {
        return Err(PeerFault::FoldedLine);
    }
    let colon = line.iter().position(|&byte| byte == b':');
    let (name, value) = line.split_at(colon.ok_or(PeerFault::MissingColon)?);
    let value = &value[1..];
    match name {
        [] => return Err(PeerFault::EmptyName),
        [.., b' ' | b'\t'] => return Err(PeerFault::SpaceBeforeColon),
        name if !byte_class::is_token(name) => return Err(PeerFault::NameByte),
        _ => {}
    }
    if value.contains(&b'\r') {
        return Err(PeerFault::BareCarriageReturn);
    }
    if value.iter().any(|&byte| byte_class::is_control(byte) && byte != b'\t') {
        return Err(PeerFault::ValueByte);
    }
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{lines, trim};

    #[test]
    fn returns_lines_without_line_ends() {
        let found: Vec<_> = lines(b"a: b\r\n\r\nc\r\n").collect();
        assert_eq!(found, [b"a: b".as_slice(), b"", b"c"]);
    }

    #[test]
    fn trims_only_spaces_and_tabs() {
        assert_eq!(trim(b" \t a b\t "), b"a b");
        assert_eq!(trim(b" \t "), b"");
    }
}
