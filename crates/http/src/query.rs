//! Parses `application/x-www-form-urlencoded` text: a query, or the content of a form.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::path::hex_digit;
use crate::scan;

/// The maximum number of pairs. Each pair costs its consumer work (hash tables, form fields).
pub const MAX_PAIRS: u16 = 1000;

/// Returns the names and values of a query or a form, in the order sent, up to [`MAX_PAIRS`].
pub const fn pairs(query: &str) -> Pairs<'_> {
    pairs_up_to(query, MAX_PAIRS)
}

/// Returns at most `most` names and values, for content that may contain more than [`MAX_PAIRS`].
pub const fn pairs_up_to(form: &str, most: u16) -> Pairs<'_> {
    Pairs { rest: form, left: most }
}

/// An iterator over names and values. See [`pairs`].
#[derive(Clone, Debug)]
pub struct Pairs<'q> {
    rest: &'q str,
    left: u16,
}

/// A name or a value, still encoded as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded<'q>(&'q str);

/// The text is malformed: a percent sign without two digits, or bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadEncoding;

impl Pairs<'_> {
    /// Returns whether the iterator stopped at its limit before the end of the text.
    pub const fn is_truncated(&self) -> bool {
        self.left == 0 && !self.rest.is_empty()
    }
}

impl<'q> Iterator for Pairs<'q> {
    type Item = (Encoded<'q>, Encoded<'q>);

    fn next(&mut self) -> Option<Self::Item> {
        // An empty part between two `&` is not a pair.
        let marks = self.rest.bytes().take_while(|byte| *byte == b'&').count();
        self.rest = self.rest.get(marks..).unwrap_or_default();
        if self.rest.is_empty() || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let (pair, rest) = split_at_mark(self.rest, b'&');
        self.rest = rest;
        let (name, value) = split_at_mark(pair, b'=');
        Some((Encoded(name), Encoded(value)))
    }
}

/// The text before and after the first ASCII character `mark`. Without one, all of it and nothing.
///
/// `str::split_once` is slower for the names and values of most queries, which are short.
#[inline]
fn split_at_mark(text: &str, mark: u8) -> (&str, &str) {
    let Some(place) = scan::find_byte(text.as_bytes(), mark) else { return (text, "") };
    (text.get(..place).unwrap_or_default(), text.get(place + 1..).unwrap_or_default())
}

impl<'q> Encoded<'q> {
    /// Returns the text as sent.
    pub const fn raw(self) -> &'q str {
        self.0
    }

    /// Decodes the text. Borrows it if there is no encoding to undo.
    pub fn decode(&self) -> Result<Cow<'q, str>, BadEncoding> {
        if !self.0.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
            return Ok(Cow::Borrowed(self.0));
        }
        let bytes: Vec<u8> = self.bytes().collect::<Result<_, _>>()?;
        let text = String::from_utf8(bytes).map_err(|_| BadEncoding)?;
        Ok(Cow::Owned(text))
    }

    /// Returns whether the decoded text equals `plain`, without allocation.
    pub fn is(&self, plain: &str) -> bool {
        self.bytes().eq(plain.bytes().map(Ok))
    }

    /// Returns the decoded bytes. An error is the last item.
    fn bytes(self) -> impl Iterator<Item = Result<u8, BadEncoding>> + use<'q> {
        let mut rest = self.0.as_bytes();
        core::iter::from_fn(move || {
            let (byte, after) = match rest {
                [] => return None,
                [b'+', after @ ..] => (Ok(b' '), after),
                [b'%', high, low, after @ ..] => match (hex_digit(*high), hex_digit(*low)) {
                    (Some(high), Some(low)) => (Ok(high << 4 | low), after),
                    _ => (Err(BadEncoding), &[][..]),
                },
                [b'%', ..] => (Err(BadEncoding), &[][..]),
                [byte, after @ ..] => (Ok(*byte), after),
            };
            rest = after;
            Some(byte)
        })
    }
}

impl fmt::Display for BadEncoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("malformed percent-encoding or text that is not UTF-8")
    }
}

impl core::error::Error for BadEncoding {}

#[cfg(test)]
mod tests {
    use alloc::borrow::Cow;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::{BadEncoding, Encoded, MAX_PAIRS, pairs};

    fn check(query: &str, expected: &str) {
        let text = |encoded: Encoded<'_>| encoded.decode().map_or("!".into(), Cow::into_owned);
        let decoded: Vec<_> =
            pairs(query).map(|(name, value)| [text(name), text(value)].join("|")).collect();
        assert_eq!(decoded.join(" "), expected, "{query}");
    }

    #[test]
    fn returns_raw_names_and_values() {
        let raw: Vec<_> =
            pairs("a%20b=c+d&e").map(|(name, value)| [name.raw(), value.raw()]).collect();
        assert_eq!(raw, [["a%20b", "c+d"], ["e", ""]]);
    }

    #[test]
    fn returns_pairs_in_order() {
        check("a=1&b=2&a=3", "a|1 b|2 a|3");
        check("", "");
        check("&&a&&", "a|");
        check("=x", "|x");
        check("a=b=c", "a|b=c");
        let long = "\u{e4}".repeat(40);
        check(
            &alloc::format!("{long}={long}&{long}&b="),
            &alloc::format!("{long}|{long} {long}| b|"),
        );
    }

    #[test]
    fn decodes_plus_and_triplets() {
        check("a+b=%C3%A4%2B", "a b|\u{e4}+");
        check("%26=%3d", "&|=");
    }

    #[test]
    fn rejects_malformed_encodings() {
        check("a=%&b=%f&c=%zz&d=%ff&e=%+1", "a|! b|! c|! d|! e|!");
        assert_eq!(Encoded("%0").decode(), Err(BadEncoding));
        let text = "malformed percent-encoding or text that is not UTF-8";
        assert_eq!(BadEncoding.to_string(), text);
    }

    #[test]
    fn borrows_plain_text() {
        assert!(matches!(Encoded("plain").decode(), Ok(Cow::Borrowed("plain"))));
    }

    #[test]
    fn compares_decoded_text() {
        assert!(Encoded("a+%62").is("a b"));
        assert!(!Encoded("a").is("a b"));
        assert!(!Encoded("a+b").is("a"));
        assert!(!Encoded("%").is(""));
        assert!(!Encoded("%").is("%"));
    }

    #[test]
    fn stops_after_a_thousand_pairs() {
        let most = usize::from(MAX_PAIRS);
        let text = "a&".repeat(most);
        let mut exact = pairs(&text);
        assert_eq!(exact.by_ref().count(), most);
        assert!(!exact.is_truncated());
        let text = "a&".repeat(most + 1);
        let mut more = pairs(&text);
        assert_eq!(more.by_ref().count(), most);
        assert!(more.is_truncated());
    }
}
