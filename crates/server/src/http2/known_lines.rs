//! The fields that a thread's last responses shared, such as `Date` and `Content-Type`, so that their
//! lines need not be parsed again.

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, ALT_SVC, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, DATE,
    REFERRER_POLICY, SERVER, STRICT_TRANSPORT_SECURITY, VARY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderName, HeaderValue};

/// The lines of a head that are kept, by their place in it.
const PLACES: usize = 12;
/// The longest line that is kept.
const LONGEST: usize = 512;

/// The fields that are kept: others differ between responses, or belong to one client.
const SHARED: [HeaderName; 12] = [
    ACCEPT_RANGES,
    ALT_SVC,
    CACHE_CONTROL,
    CONTENT_SECURITY_POLICY,
    CONTENT_TYPE,
    DATE,
    REFERRER_POLICY,
    SERVER,
    STRICT_TRANSPORT_SECURITY,
    VARY,
    X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
];

/// The last line at each place of a head, with its field. At most 12 KiB, since a value is a second copy.
pub(super) struct KnownLines([Option<KnownLine>; PLACES]);

/// A line that has been parsed.
pub(super) struct KnownLine {
    /// With its line break.
    line: Bytes,
    pub(super) name: HeaderName,
    pub(super) value: HeaderValue,
}

impl KnownLine {
    /// The number of bytes, with the line break.
    pub(super) fn length(&self) -> usize {
        self.line.len()
    }
}

impl KnownLines {
    pub(super) const fn new() -> Self {
        Self([const { None }; PLACES])
    }

    /// The line at the beginning of `bytes`, if the last head had the same line at `place`, which
    /// counts from 0.
    pub(super) fn find(&self, place: usize, bytes: &[u8]) -> Option<&KnownLine> {
        self.0.get(place)?.as_ref().filter(|known| bytes.starts_with(&known.line))
    }

    /// Keeps a line with its line break, and its field, if responses share such fields.
    pub(super) fn note(
        &mut self,
        place: usize,
        line: &[u8],
        name: &HeaderName,
        value: &HeaderValue,
    ) {
        let Some(known) = self.0.get_mut(place) else { return };
        if line.len() > LONGEST || !SHARED.contains(name) {
            return;
        }
        // A copy, or the line would keep the memory of its whole response.
        let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) else { return };
        *known = Some(KnownLine { line: Bytes::copy_from_slice(line), name: name.clone(), value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(lines: &mut KnownLines, place: usize, line: &'static str) {
        let (name, value) = line.trim_end().split_once(": ").unwrap();
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        lines.note(place, line.as_bytes(), &name, &HeaderValue::from_static(value));
    }

    #[test]
    fn finds_a_whole_line_at_its_place_only() {
        let mut lines = KnownLines::new();
        note(&mut lines, 1, "Content-Type: text/html\r\n");
        let found = lines.find(1, b"Content-Type: text/html\r\nDate: x\r\n").unwrap();
        assert_eq!((found.name.as_str(), found.length()), ("content-type", 25));
        assert_eq!(found.value, "text/html");
        assert!(lines.find(0, b"Content-Type: text/html\r\n").is_none());
        for other in ["Content-Type: text/html", "Content-Type: text/html; charset=utf-8\r\n", ""] {
            assert!(lines.find(1, other.as_bytes()).is_none(), "{other:?}");
        }
    }

    #[test]
    fn keeps_no_field_of_one_client_and_no_long_line() {
        let mut lines = KnownLines::new();
        note(&mut lines, 0, "Set-Cookie: a=b\r\n");
        assert!(lines.find(0, b"Set-Cookie: a=b\r\n").is_none());
        note(&mut lines, PLACES, "Date: x\r\n");
        assert!(lines.find(PLACES, b"Date: x\r\n").is_none());
        let long: &'static str = format!("Vary: {}\r\n", "x".repeat(LONGEST)).leak();
        note(&mut lines, 0, long);
        assert!(lines.find(0, long.as_bytes()).is_none());
    }
}
