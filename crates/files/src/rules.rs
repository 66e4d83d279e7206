//! Decides what a site says about its files: names of indexes, hidden names, fields by pattern.

use std::sync::Arc;

/// What is the same for all files of a site.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Files that stand for their folder; the first that is there.
    pub index: Vec<String>,
    /// A folder without an index shows what is in it.
    pub listing: bool,
    /// Packed forms of a file that lie beside it (`.br`, `.zst`, `.gz`) are sent to peers that take them.
    pub precompressed: bool,
    /// Files whose names begin with a dot are served too.
    pub hidden: bool,
    /// Fields of the replies with some files.
    pub fields: Vec<FieldRule>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            index: vec![String::from("index.html")],
            listing: false,
            precompressed: true,
            hidden: false,
            fields: Vec::new(),
        }
    }
}

/// A field of the replies with the files that fit a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldRule {
    pattern: String,
    field: Field,
}

/// A field's name and value.
pub(crate) type Field = (Arc<str>, Arc<str>);

/// Fields that the server sets itself; two of one would be a lie at best.
const RESERVED: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "keep-alive",
    "last-modified",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl FieldRule {
    /// A field for the files that fit `pattern`: `*` stands for any letters of one name, `**` for any at all. A
    /// pattern without a slash is of the last name of a path, any other is of the whole path.
    ///
    /// # Errors
    ///
    /// A field that is none, or that the server sets itself.
    pub fn new(pattern: &str, name: &str, value: &str) -> Result<Self, String> {
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(format!("`{name}` is no name of a field"));
        }
        if RESERVED.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return Err(format!("{name} is set by the server itself"));
        }
        if value.is_empty() || !value.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
            return Err(format!("the value of {name} must be visible ASCII"));
        }
        Ok(Self { pattern: pattern.into(), field: (name.into(), value.into()) })
    }

    fn matches(&self, path: &str) -> bool {
        let text =
            if self.pattern.contains('/') { path } else { path.rsplit('/').next().unwrap_or(path) };
        glob_matches(self.pattern.as_bytes(), text.as_bytes())
    }
}

impl Rules {
    /// The fields for the file that a path means.
    pub(crate) fn fields_of(&self, path: &str) -> Box<[Field]> {
        let matching = self.fields.iter().filter(|rule| rule.matches(path));
        matching.map(|rule| rule.field.clone()).collect()
    }
}

/// Whether a pattern fits a whole text. Only the last star is gone back to, and of the double ones the last too, so the
/// time is bounded by the product of the lengths.
fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    // Where to go on when a letter does not fit: behind a star, one letter further.
    let (mut star, mut double): (Option<[usize; 2]>, Option<[usize; 2]>) = (None, None);
    loop {
        match pattern.get(at) {
            Some(b'*') if pattern.get(at + 1) == Some(&b'*') => {
                at += 2;
                (star, double) = (None, Some([at, position]));
                continue;
            }
            Some(b'*') => {
                at += 1;
                star = Some([at, position]);
                continue;
            }
            None if position == text.len() => return true,
            Some(letter) if text.get(position) == Some(letter) => {
                (at, position) = (at + 1, position + 1);
                continue;
            }
            _ => {}
        }
        let one =
            star.as_mut().filter(|[_, from]| text.get(*from).is_some_and(|&byte| byte != b'/'));
        let any = double.as_mut().filter(|[_, from]| *from < text.len());
        let Some(back) = one.or(any) else { return false };
        back[1] += 1;
        [at, position] = *back;
        if double == Some([at, position]) {
            star = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldRule, glob_matches};

    #[test]
    fn stops_single_star_at_slash_but_not_double_star() {
        for (pattern, text, expected) in [
            ("*.css", "a.css", true),
            ("*.css", ".css", true),
            ("*.css", "a.css.map", false),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/b/c", false),
            ("/a/**", "/a/b/c", true),
            ("/**/*.js", "/a/b/c.js", true),
            ("/**/*.js", "/c.js", false),
            ("/**.js", "/c.js", true),
            ("/*/b/*", "/a/b/c", true),
            ("/**/b/*", "/b/x/b/c", true),
            ("/**/b/*", "/b/x/b/c/d", false),
            ("", "", true),
            ("**", "", true),
            ("*a*b*c", "xaybzc", true),
            ("*a*b*c", "xaybz", false),
        ] {
            assert_eq!(
                glob_matches(pattern.as_bytes(), text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
    }

    /// The same by trying everything.
    fn naive_match(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', b'*', rest @ ..] => {
                (0..=text.len()).any(|skip| naive_match(rest, &text[skip..]))
            }
            [b'*', rest @ ..] => {
                let max = text.iter().position(|&byte| byte == b'/').unwrap_or(text.len());
                (0..=max).any(|skip| naive_match(rest, &text[skip..]))
            }
            [letter, rest @ ..] => text.first() == Some(letter) && naive_match(rest, &text[1..]),
        }
    }

    #[test]
    fn matches_naive_pattern_search() {
        let words = |letters: &[u8], length: u32| -> Vec<Vec<u8>> {
            let count = letters.len() as u32;
            (0..count.pow(length))
                .map(|word| {
                    (0..length)
                        .map(|position| letters[(word / count.pow(position) % count) as usize])
                        .collect()
                })
                .collect()
        };
        for pattern in (0..6).flat_map(|length| words(b"*/a", length)) {
            for text in (0..5).flat_map(|length| words(b"/ab", length)) {
                let label =
                    || String::from_utf8_lossy(&[&pattern[..], b" ", &text].concat()).into_owned();
                assert_eq!(
                    glob_matches(&pattern, &text),
                    naive_match(&pattern, &text),
                    "{}",
                    label()
                );
            }
        }
    }

    #[test]
    fn rejects_invalid_and_reserved_fields() {
        assert!(FieldRule::new("*", "Cache-Control", "max-age=60").is_ok());
        for (name, value) in
            [("Content-Length", "1"), ("a b", "c"), ("", "c"), ("A", "b\r\nC: d"), ("A", "")]
        {
            assert!(FieldRule::new("*", name, value).is_err(), "{name}: {value}");
        }
    }
}
