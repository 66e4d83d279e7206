//! The site's rules for its files: indexes, hidden files and header fields by pattern.

use std::sync::Arc;

/// The rules for all files of a site.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The names of index files. The first one that exists is served for its directory.
    pub index: Vec<String>,
    /// Whether a directory without an index is listed.
    pub listing: bool,
    /// Whether precompressed variants (`.br`, `.zst`, `.gz`) are sent to clients that accept them.
    pub precompressed: bool,
    /// Whether files whose names begin with a dot are served.
    pub hidden: bool,
    /// Header fields for the files that match a pattern.
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

/// A header field for the files that match a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldRule {
    pattern: String,
    field: Field,
}

/// The name and value of a field.
pub(crate) type Field = (Arc<str>, Arc<str>);

/// Fields that the server sets itself. A second one could contradict it.
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
    /// Creates a rule for the files that match `pattern`. `*` matches any characters within one
    /// name, `**` any characters at all. A pattern without a slash applies to the last name of a
    /// path, any other to the whole path.
    ///
    /// # Errors
    ///
    /// The field is invalid, or the server sets it itself.
    pub fn new(pattern: &str, name: &str, value: &str) -> Result<Self, String> {
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(format!("`{name}` is not a valid header field name"));
        }
        if RESERVED.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return Err(format!("the server sets {name} itself; leave it out"));
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
    /// Returns the fields for the file of a path.
    pub(crate) fn fields_of(&self, path: &str) -> Box<[Field]> {
        let matching = self.fields.iter().filter(|rule| rule.matches(path));
        matching.map(|rule| rule.field.clone()).collect()
    }
}

/// Whether a pattern matches a whole text. It backtracks only to the last `*` and to the last `**`,
/// so the time is bounded by the product of the lengths.
fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    // Where to continue after a mismatch: after a star, one character further.
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

    /// Matches a pattern by trying every possibility.
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
