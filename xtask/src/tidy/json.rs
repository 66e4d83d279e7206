//! A JSON parser for the part of RFC 8259 that the output of cargo needs.

use anyhow::{Result, bail};

/// A JSON value. Numbers stay text: no caller calculates with them.
#[derive(Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Deeper than cargo nests, and shallow enough for any stack.
const DEEPEST: u32 = 64;

impl Json {
    /// Parses one value. Fails if text follows it.
    pub(super) fn read(text: &str) -> Result<Self> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(DEEPEST)?;
        if reader.peek().is_some() {
            bail!("unexpected text after the value, at byte {}", reader.at);
        }
        Ok(value)
    }

    /// The member of this name, or `Null`.
    pub(super) fn member(&self, name: &str) -> &Self {
        let Self::Object(members) = self else { return &Self::Null };
        members.iter().find(|(key, _)| key == name).map_or(&Self::Null, |(_, value)| value)
    }

    /// The elements of a list; empty for other values.
    pub(super) fn elements(&self) -> &[Self] {
        if let Self::List(elements) = self { elements } else { &[] }
    }

    /// The text of a string.
    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn value(&mut self, depth: u32) -> Result<Json> {
        if depth == 0 {
            bail!("nested too deeply");
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => Ok(Json::Number(self.word().to_owned())),
            _ => match self.word() {
                "null" => Ok(Json::Null),
                "true" => Ok(Json::Bool(true)),
                "false" => Ok(Json::Bool(false)),
                word => bail!("no value at byte {}: `{word}`", self.at),
            },
        }
    }

    fn object(&mut self, depth: u32) -> Result<Json> {
        self.expect(b'{')?;
        let mut members = Vec::new();
        if self.peek() != Some(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    bail!("no name at byte {}", self.at);
                }
                let name = self.string()?;
                self.expect(b':')?;
                members.push((name, self.value(depth - 1)?));
                if !self.comma()? {
                    break;
                }
            }
        }
        self.expect(b'}')?;
        Ok(Json::Object(members))
    }

    fn list(&mut self, depth: u32) -> Result<Json> {
        self.expect(b'[')?;
        let mut elements = Vec::new();
        if self.peek() != Some(b']') {
            loop {
                elements.push(self.value(depth - 1)?);
                if !self.comma()? {
                    break;
                }
            }
        }
        self.expect(b']')?;
        Ok(Json::List(elements))
    }

    fn string(&mut self) -> Result<String> {
        self.expect(b'"')?;
        let mut string = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.find(['"', '\\']) else { bail!("a string does not end") };
            string.push_str(&rest[..end]);
            self.at += end + 1;
            if rest.as_bytes()[end] == b'"' {
                return Ok(string);
            }
            string.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char> {
        let escape = self.text[self.at..].chars().next();
        self.at += escape.map_or(0, char::len_utf8);
        Ok(match escape {
            Some(same @ ('"' | '\\' | '/')) => same,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
                self.at += digits.len();
                // Halves of a surrogate pair become the replacement character: cargo writes no such
                // pairs.
                let code = u32::from_str_radix(digits, 16)?;
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => bail!("an unknown escape at byte {}", self.at),
        })
    }

    /// Skips a comma, if one is next.
    fn comma(&mut self) -> Result<bool> {
        let comma = self.peek() == Some(b',');
        if comma {
            self.expect(b',')?;
        }
        Ok(comma)
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.peek() != Some(byte) {
            bail!("no `{}` at byte {}", char::from(byte), self.at);
        }
        self.at += 1;
        Ok(())
    }

    /// The next byte that is not a space, without consuming it.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// The text up to the next punctuation mark or space.
    fn word(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let marks = |char: char| char.is_ascii_whitespace() || ",]}:[{\"".contains(char);
        let word = &rest[..rest.find(marks).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_names_lists_and_escapes() {
        let json = Json::read(r#" {"a": ["x\n\u00e9", true, null, -1.5e3], "b": {}} "#);
        let json = json.expect("it is JSON");
        let expected = [
            Json::Text("x\n\u{e9}".to_owned()),
            Json::Bool(true),
            Json::Null,
            Json::Number("-1.5e3".to_owned()),
        ];
        assert_eq!(json.member("a").elements(), expected);
        assert_eq!(json.member("b"), &Json::Object(Vec::new()));
        assert_eq!(json.member("c"), &Json::Null);
    }

    #[test]
    fn rejects_invalid_json() {
        for text in ["", "{", "[1,]", "{\"a\"}", "\"a", "nul", "1 2", "{a:1}", "\"\\x\""] {
            assert!(Json::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_the_nesting_depth() {
        assert!(Json::read(&"[".repeat(100_000)).is_err());
    }
}
