//! Which media types are worth compressing.

use std::fmt;

/// The media types whose content is compressed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaTypes(Vec<Rule>);

/// A rule for media types, in lower case.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Rule {
    /// `type/subtype`.
    Exact(String),
    /// `type/`: all subtypes.
    Beginning(String),
    /// `+suffix`: all types with this structured syntax (RFC 6839).
    Suffix(String),
}

/// A text that is no rule for media types.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadMediaType(String);

impl fmt::Display for BadMediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no media type; write text/html, text/* or +json", self.0)
    }
}

impl std::error::Error for BadMediaType {}

/// The types that are compressed by default: text in all its forms, and formats without compression
/// of their own. Images other than SVG, audio, video, archives and WOFF2 are compressed already.
const DEFAULT: [&str; 14] = [
    "text/*",
    "+json",
    "+xml",
    "application/json",
    "application/xml",
    "application/javascript",
    "application/ndjson",
    "application/x-ndjson",
    "application/wasm",
    "application/rtf",
    "application/vnd.ms-fontobject",
    "font/ttf",
    "font/otf",
    "image/bmp",
];

impl Default for MediaTypes {
    fn default() -> Self {
        let rule = |text: &str| Rule::parse(text).expect("each default is a rule");
        Self(DEFAULT.into_iter().map(rule).collect())
    }
}

impl MediaTypes {
    /// Creates an empty set.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Adds the default rules.
    pub fn add_default(&mut self) {
        self.0.extend(Self::default().0);
    }

    /// Adds a rule: `text/html`, `text/*` or `+json`.
    ///
    /// # Errors
    ///
    /// The text is no rule.
    pub fn add(&mut self, rule: &str) -> Result<(), BadMediaType> {
        self.0.push(Rule::parse(rule)?);
        Ok(())
    }

    /// Whether a Content-Type value has one of the types. Its parameters do not matter.
    pub fn has(&self, content_type: &[u8]) -> bool {
        let end = content_type.iter().position(|&byte| byte == b';');
        let name = content_type[..end.unwrap_or(content_type.len())].trim_ascii();
        self.0.iter().any(|rule| rule.matches(name))
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, BadMediaType> {
        let bad = || BadMediaType(text.to_owned());
        let is_token = |part: &str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
            !part.is_empty() && part.bytes().all(is_part)
        };
        let small = text.to_ascii_lowercase();
        if let Some(suffix) = small.strip_prefix('+') {
            return if is_token(suffix) { Ok(Self::Suffix(small)) } else { Err(bad()) };
        }
        match small.split_once('/') {
            Some((kind, "*")) if is_token(kind) => Ok(Self::Beginning(format!("{kind}/"))),
            Some((kind, subtype)) if is_token(kind) && is_token(subtype) => Ok(Self::Exact(small)),
            _ => Err(bad()),
        }
    }

    fn matches(&self, name: &[u8]) -> bool {
        let has_end = |end: &str| {
            let at = name.len().checked_sub(end.len());
            at.is_some_and(|at| name[at..].eq_ignore_ascii_case(end.as_bytes()))
        };
        match self {
            Self::Exact(own) => name.eq_ignore_ascii_case(own.as_bytes()),
            Self::Beginning(own) => {
                let start = name.get(..own.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(own.as_bytes()))
            }
            Self::Suffix(own) => has_end(own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compresses_text_and_not_what_is_compressed_already() {
        let types = MediaTypes::default();
        for name in [
            "text/html; charset=utf-8",
            "TEXT/CSS",
            "text/event-stream",
            "application/json",
            "application/problem+json",
            "image/svg+xml",
            "application/xhtml+xml; charset=utf-8",
            "application/wasm",
            "font/ttf",
        ] {
            assert!(types.has(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "image/png",
            "image/jpeg",
            "video/mp4",
            "audio/mpeg",
            "font/woff2",
            "font/woff",
            "application/zip",
            "application/gzip",
            "application/octet-stream",
            "application/pdf",
        ] {
            assert!(!types.has(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn follows_its_rules_only() {
        let mut types = MediaTypes::none();
        assert!(!types.has(b"text/html"));
        for rule in ["application/pdf", "Model/*", "+cbor"] {
            types.add(rule).unwrap();
        }
        assert!(types.has(b"application/PDF ; a=b") && types.has(b"model/obj"));
        assert!(types.has(b"application/senml+cbor"));
        assert!(!types.has(b"text/html") && !types.has(b"cbor") && !types.has(b"mod"));
        types.add_default();
        assert!(types.has(b"text/html") && types.has(b"model/obj"));
    }

    #[test]
    fn rejects_texts_that_are_no_rules() {
        let mut types = MediaTypes::none();
        for text in ["", "html", "*/*", "text/", "/html", "text/a b", "+", "text/html;q=1"] {
            let error = types.add(text).unwrap_err().to_string();
            assert!(error.contains("write text/html, text/* or +json"), "{error}");
        }
        assert_eq!(types, MediaTypes::none());
    }
}
