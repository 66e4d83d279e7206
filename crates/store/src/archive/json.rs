//! A JSON reader (RFC 8259) with error positions, and JSON string output.
//!
//! The crate has its own reader for three reasons: a line is read directly into the columns of its
//! table, numbers must keep their last bit, and the author of a handwritten line gets the column of
//! a mistake. The reader does not recurse, so any nesting depth is safe.

use std::borrow::Cow;

/// Reads one line from left to right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'t> {
    text: &'t str,
    /// The offset of the next byte.
    at: usize,
}

/// An error and its byte offset in a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ParseError {
    pub(super) at: usize,
    pub(super) what: String,
}

/// A value without nested values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Scalar<'t> {
    Null,
    Bool(bool),
    /// The number's text.
    Number(&'t str),
    Text(Cow<'t, str>),
}

impl<'t> Reader<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Reads an object. `each` receives a key and reads its value.
    pub(super) fn object<E: From<ParseError>>(
        &mut self,
        mut each: impl FnMut(&mut Self, usize, Cow<'t, str>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.expect(b'{', "an object, which begins with `{`")?;
        if self.accepts(b'}') {
            return Ok(());
        }
        loop {
            let at = self.next_offset();
            let key = self.text()?;
            self.expect(b':', "`:`")?;
            each(self, at, key)?;
            if self.accepts(b'}') {
                return Ok(());
            }
            self.expect(b',', "`,` or `}`")?;
        }
    }

    /// Reads an array. `each` reads one element.
    pub(super) fn array<E: From<ParseError>>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.expect(b'[', "a list, which begins with `[`")?;
        if self.accepts(b']') {
            return Ok(());
        }
        loop {
            each(self)?;
            if self.accepts(b']') {
                return Ok(());
            }
            self.expect(b',', "`,` or `]`")?;
        }
    }

    /// Reads a string.
    pub(super) fn text(&mut self) -> Result<Cow<'t, str>, ParseError> {
        self.expect(b'"', "a text, which begins with `\"`")?;
        let begin = self.at;
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Borrowed(&self.text[begin..self.at - 1]));
                }
                Some(b'\\') => return self.escaped(begin),
                Some(byte) => self.plain(byte)?,
                None => return Err(self.parse_error("the line ends within a text")),
            }
        }
    }

    /// Reads a scalar value.
    pub(super) fn scalar(&mut self) -> Result<Scalar<'t>, ParseError> {
        let words =
            [("null", Scalar::Null), ("true", Scalar::Bool(true)), ("false", Scalar::Bool(false))];
        self.next_offset();
        match self.byte() {
            Some(b'"') => self.text().map(Scalar::Text),
            Some(b'-' | b'0'..=b'9') => self.number().map(Scalar::Number),
            _ => {
                for (word, value) in words {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.parse_error("expected a text, a number, `true`, `false` or `null`"))
            }
        }
    }

    /// Skips a value that is read later. The skip finds only the value's end and checks little
    /// else.
    pub(super) fn skip(&mut self) -> Result<(), ParseError> {
        let mut depth = 0_usize;
        loop {
            self.next_offset();
            match self.byte() {
                Some(b'{' | b'[') => {
                    self.at += 1;
                    depth += 1;
                }
                Some(b'}' | b']') if depth > 0 => {
                    self.at += 1;
                    depth -= 1;
                }
                Some(b',' | b':') if depth > 0 => self.at += 1,
                _ => drop(self.scalar()?),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Whether the next value is `null`.
    pub(super) fn is_null(mut self) -> bool {
        self.scalar() == Ok(Scalar::Null)
    }

    /// Requires the end of the line.
    pub(super) fn end(&mut self) -> Result<(), ParseError> {
        if self.next_offset() == self.text.len() {
            return Ok(());
        }
        Err(self.parse_error("expected the end of the line"))
    }

    /// The offset of the next value.
    pub(super) fn next_offset(&mut self) -> usize {
        while let Some(b' ' | b'\t' | b'\r') = self.byte() {
            self.at += 1;
        }
        self.at
    }

    pub(super) fn parse_error(&self, what: impl Into<String>) -> ParseError {
        ParseError { at: self.at, what: what.into() }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn accepts(&mut self, byte: u8) -> bool {
        self.next_offset();
        let takes = self.byte() == Some(byte);
        self.at += usize::from(takes);
        takes
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), ParseError> {
        if self.accepts(byte) { Ok(()) } else { Err(self.parse_error(format!("expected {what}"))) }
    }

    /// Skips an unescaped byte of a string.
    fn plain(&mut self, byte: u8) -> Result<(), ParseError> {
        if byte < b' ' {
            return Err(
                self.parse_error("a control character must be written as `\\u` and its number")
            );
        }
        self.at += 1;
        Ok(())
    }

    /// Reads the rest of a string from its first escape on.
    fn escaped(&mut self, begin: usize) -> Result<Cow<'t, str>, ParseError> {
        let mut text = self.text[begin..self.at].to_owned();
        let mut plain = self.at;
        loop {
            match self.byte() {
                Some(b'"') => {
                    text.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => {
                    text.push_str(&self.text[plain..self.at]);
                    text.push(self.escape()?);
                    plain = self.at;
                }
                Some(byte) => self.plain(byte)?,
                None => return Err(self.parse_error("the line ends within a text")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let at = self.at;
        let wrong = |what: &str| ParseError { at, what: what.to_owned() };
        self.at += 1;
        let letter = self.byte().ok_or_else(|| wrong("the line ends within a text"))?;
        let plain = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                let unit = self.unit()?;
                if !(0xd800..0xdc00).contains(&unit) {
                    let half = "a low surrogate without the high surrogate before it";
                    return char::from_u32(unit).ok_or_else(|| wrong(half));
                }
                let is_pair = self.text[self.at..].starts_with("\\u");
                self.at += if is_pair { 2 } else { 0 };
                let low = if is_pair { self.unit()? } else { 0 };
                let low = (0xdc00..0xe000).contains(&low).then(|| low - 0xdc00);
                let pair =
                    low.and_then(|low| char::from_u32(0x1_0000 + (unit - 0xd800) * 0x400 + low));
                return pair
                    .ok_or_else(|| wrong("a high surrogate without the low surrogate after it"));
            }
            _ => return Err(wrong("no such escape")),
        };
        self.at += 1;
        Ok(plain)
    }

    fn unit(&mut self) -> Result<u32, ParseError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or_else(|| self.parse_error("`\\u` needs four hexadecimal digits"))?;
        self.at += 4;
        Ok(unit)
    }

    fn number(&mut self) -> Result<&'t str, ParseError> {
        let begin = self.at;
        self.at += usize::from(self.byte() == Some(b'-'));
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(&self.text[begin..self.at])
    }

    fn digits(&mut self) -> Result<(), ParseError> {
        let begin = self.at;
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
        if self.at == begin { Err(self.parse_error("expected a digit")) } else { Ok(()) }
    }
}

/// Appends a quoted and escaped string.
pub(super) fn put_text(to: &mut Vec<u8>, text: &str) {
    to.push(b'"');
    let mut plain = 0;
    for (position, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..b' ' => b'u',
            _ => continue,
        };
        to.extend_from_slice(&text.as_bytes()[plain..position]);
        to.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            to.extend_from_slice(format!("{byte:04x}").as_bytes());
        }
        plain = position + 1;
    }
    to.extend_from_slice(&text.as_bytes()[plain..]);
    to.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn refused(line: &str, at: usize, expected: &str) {
        let mut reader = Reader::new(line);
        let read = reader.scalar().and_then(|_| reader.end());
        let parse_error = read.unwrap_err();
        assert_eq!(parse_error.at, at, "{parse_error:?}");
        assert!(parse_error.what.contains(expected), "{parse_error:?}");
    }

    #[test]
    fn writes_control_characters_in_their_shortest_form() {
        let mut bytes = Vec::new();
        put_text(&mut bytes, "a\"b\\\n\r\t\u{1}\u{1f} \u{7f}\u{e4}");
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text, "\"a\\\"b\\\\\\n\\r\\t\\u0001\\u001f \u{7f}\u{e4}\"");
    }

    #[test]
    fn reports_the_position_of_a_mistake() {
        refused("", 0, "expected a text, a number");
        refused(" nul", 1, "expected a text, a number");
        refused("\"abc", 4, "ends within a text");
        refused("\"a\\", 2, "ends within a text");
        refused("\"a\tb\"", 2, "control character");
        refused("\"a\\q\"", 2, "no such escape");
        refused("\"\\u12g4\"", 3, "four hexadecimal digits");
        refused("\"\\ud800 \"", 1, "surrogate");
        refused("\"\\ud800\\u0041\"", 1, "surrogate");
        refused("\"\\udc00\"", 1, "surrogate");
        refused("01", 1, "end of the line");
        refused("1.", 2, "a digit");
        refused("-", 1, "a digit");
        refused("1e+", 3, "a digit");
        refused("true false", 5, "end of the line");
    }

    #[test]
    fn reads_every_escape() {
        let mut reader = Reader::new(r#""\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00""#);
        assert_eq!(reader.text().unwrap(), "\"\\/\u{8}\u{c}\n\r\t\u{e4}\u{1f600}");
        reader.end().unwrap();
    }

    #[test]
    fn skips_deeply_nested_values() {
        let deep = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
        let mut reader = Reader::new(&deep);
        reader.skip().unwrap();
        reader.end().unwrap();
        assert!(Reader::new("{\"a\":[}").skip().is_err());
    }

    /// Reads a value with this reader into the type of `serde_json`, for comparison.
    fn walk(reader: &mut Reader<'_>) -> Result<serde_json::Value, ParseError> {
        let position = reader.next_offset();
        match reader.text.as_bytes().get(position) {
            Some(b'{') => {
                let mut members = serde_json::Map::new();
                reader.object(|reader, _, key| {
                    members.insert(key.into_owned(), walk(reader)?);
                    Ok::<(), ParseError>(())
                })?;
                Ok(members.into())
            }
            Some(b'[') => {
                let mut values = Vec::new();
                reader.array(|reader| {
                    values.push(walk(reader)?);
                    Ok::<(), ParseError>(())
                })?;
                Ok(values.into())
            }
            _ => Ok(match reader.scalar()? {
                Scalar::Null => serde_json::Value::Null,
                Scalar::Bool(value) => value.into(),
                Scalar::Number(digits) => serde_json::from_str(digits).unwrap_or_default(),
                Scalar::Text(text) => text.into_owned().into(),
            }),
        }
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::hash_map(any::<String>(), inner, 0..6).prop_map(|members| {
                    members.into_iter().collect::<serde_json::Map<_, _>>().into()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_lines_as_serde_json_does(value in value()) {
            let line = value.to_string();
            let mut reader = Reader::new(&line);
            prop_assert_eq!(walk(&mut reader), Ok(value));
            prop_assert_eq!(reader.end(), Ok(()));
            let mut passed = Reader::new(&line);
            prop_assert_eq!((passed.skip(), passed.end()), (Ok(()), Ok(())));
        }

        #[test]
        fn rejects_what_serde_json_rejects(line in "[\\[\\]{},:\"\\\\a0-9eu.truefalsn -]{0,12}") {
            let mut reader = Reader::new(&line);
            let own = walk(&mut reader).and_then(|value| reader.end().map(|()| value));
            let other = serde_json::from_str::<serde_json::Value>(&line);
            // A number out of the range of `f64` is the column's concern.
            let is_huge = other.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
            prop_assert!(own.is_ok() == other.is_ok() || is_huge, "{:?}, {:?}", own, other);
        }

        #[test]
        fn round_trips_text(text: String) {
            let mut written = Vec::new();
            put_text(&mut written, &text);
            let written = String::from_utf8(written).unwrap();
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text.clone());
            prop_assert_eq!(Reader::new(&written).text(), Ok(Cow::Owned(text)));
        }
    }
}
