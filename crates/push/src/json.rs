//! Validates JSON values and writes JSON strings.

use alloc::vec::Vec;

/// The maximum nesting depth of arrays and objects, so that no client has to parse a deeper value.
const MAX_DEPTH: usize = 128;

/// Whether the bytes are one value of RFC 8259, with at most whitespace around it.
pub(crate) fn is_value(bytes: &[u8]) -> bool {
    // The parser below checks strings only for quotes and escapes, so UTF-8 is checked here.
    if core::str::from_utf8(bytes).is_err() {
        return false;
    }
    let mut parser = Parser(bytes);
    parser.skip_space();
    parser.value(0).is_some() && {
        parser.skip_space();
        parser.0.is_empty()
    }
}

/// Writes a text as a JSON string. It also escapes U+2028 and U+2029, which some clients treat as
/// line ends.
pub(crate) fn put_string(to: &mut Vec<u8>, text: &str) {
    to.push(b'"');
    let mut plain = 0;
    for (at, char) in text.char_indices() {
        let escape: &[u8] = match char {
            '"' => b"\\\"",
            '\\' => b"\\\\",
            '\n' => b"\\n",
            '\r' => b"\\r",
            '\t' => b"\\t",
            '\u{2028}' => b"\\u2028",
            '\u{2029}' => b"\\u2029",
            '\0'..='\u{1f}' => b"",
            _ => continue,
        };
        to.extend_from_slice(&text.as_bytes()[plain..at]);
        if escape.is_empty() {
            let digit = |number: u32| b"0123456789abcdef"[(number & 15) as usize];
            let number = u32::from(char);
            to.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(number >> 4), digit(number)]);
        } else {
            to.extend_from_slice(escape);
        }
        plain = at + char.len_utf8();
    }
    to.extend_from_slice(&text.as_bytes()[plain..]);
    to.push(b'"');
}

/// The bytes that are not parsed yet.
struct Parser<'b>(&'b [u8]);

impl Parser<'_> {
    fn skip_space(&mut self) {
        self.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    }

    fn skip_while(&mut self, is_match: impl Fn(u8) -> bool) -> usize {
        let count = self.0.iter().take_while(|byte| is_match(**byte)).count();
        self.0 = &self.0[count..];
        count
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Skips the given bytes if they are next, and returns whether they were.
    fn skip(&mut self, expected: &[u8]) -> bool {
        let rest = self.0.strip_prefix(expected);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.0.first()? {
            b'{' if depth < MAX_DEPTH => self.members(b'}', |parser| {
                parser.string()?;
                parser.skip_space();
                parser.skip(b":").then_some(())?;
                parser.skip_space();
                parser.value(depth + 1)
            }),
            b'[' if depth < MAX_DEPTH => self.members(b']', |parser| parser.value(depth + 1)),
            b'"' => self.string(),
            b't' => self.skip(b"true").then_some(()),
            b'f' => self.skip(b"false").then_some(()),
            b'n' => self.skip(b"null").then_some(()),
            _ => self.number(),
        }
    }

    fn members(&mut self, end: u8, member: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        self.next();
        self.skip_space();
        if self.skip(&[end]) {
            return Some(());
        }
        loop {
            self.skip_space();
            member(self)?;
            self.skip_space();
            match self.next()? {
                b',' => {}
                byte if byte == end => return Some(()),
                _ => return None,
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        self.skip(b"\"").then_some(())?;
        loop {
            self.skip_while(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => match self.next()? {
                    b'u' => {
                        let digits = self.0.first_chunk::<4>()?;
                        digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                        self.0 = &self.0[4..];
                    }
                    escape => b"\"\\/bfnrt".contains(&escape).then_some(())?,
                },
                _ => return None,
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        self.skip(b"-");
        if !self.skip(b"0") {
            self.digits()?;
        }
        if self.skip(b".") {
            self.digits()?;
        }
        if self.skip(b"e") || self.skip(b"E") {
            let _sign = self.skip(b"+") || self.skip(b"-");
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        (self.skip_while(|byte| byte.is_ascii_digit()) > 0).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_quotes_and_line_ends() {
        let mut written = Vec::new();
        put_string(&mut written, "a\"b\\c\n\r\t\u{1}\u{1f}\u{2028}\u{2029}");
        let expected = r#""a\"b\\c\n\r\t\u0001\u001f\u2028\u2029""#;
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn accepts_valid_json_and_rejects_invalid() {
        for text in [
            "null",
            " true ",
            "false",
            "0",
            "-0.5e+10",
            "1E3",
            "1e-5",
            "\"\"",
            "\"\\u00e9\\n\"",
            "[]",
            "[ ]",
            "{}",
            "{\"a\" : [1, {\"b\": null}], \"c\": \"\u{e9}\"}",
            "[[[]], 1]",
        ] {
            assert!(is_value(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            " ",
            "nul",
            "01",
            "1.",
            ".5",
            "1e",
            "+1",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "[1,]",
            "[1 2]",
            "[1}",
            "{\"a\": 1]",
            "[",
            "{\"a\"}",
            "{a: 1}",
            "{\"a\": 1,}",
            "1 2",
            "NaN",
            "// a\n1",
        ] {
            assert!(!is_value(text.as_bytes()), "{text}");
        }
        assert!(!is_value(b"\"\xff\""));
    }

    #[test]
    fn limits_nesting_depth() {
        for (depth, is_good) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false), (1_000_000, false)] {
            let arrays = [vec![b'['; depth], vec![b']'; depth]].concat();
            assert_eq!(is_value(&arrays), is_good, "{depth} arrays");
            let open = b"{\"a\":".repeat(depth);
            let objects = [&open[..], b"1", &vec![b'}'; depth]].concat();
            assert_eq!(is_value(&objects), is_good, "{depth} objects");
            let open = b"[{\"a\":".repeat(depth / 2);
            let both = [&open[..], &vec![b'['; depth % 2], b"1", &vec![b']'; depth % 2]].concat();
            let both = [both, b"}]".repeat(depth / 2)].concat();
            assert_eq!(is_value(&both), is_good, "{depth} objects and arrays");
        }
    }

    proptest! {
        #[test]
        fn writes_any_text_as_json_string_on_one_line(text: String) {
            let mut written = Vec::new();
            put_string(&mut written, &text);
            prop_assert!(is_value(&written));
            prop_assert!(!written.contains(&b'\n'));
        }

        #[test]
        fn does_not_panic_on_any_bytes(bytes in "[\\[\\]{}\",:0-9eE.\\-+\\\\u tfn]{0,60}") {
            let _ = is_value(bytes.as_bytes());
        }
    }
}
