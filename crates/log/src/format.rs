//! Formats of the access log: parses the text of a format into the parts of a line.

use crate::escape::{Delimiters, Escaping, QUOTE, push_number};
use crate::secret_targets::SecretTargets;
use crate::stamp::Stamp;
use crate::writer::Gap;

/// The parsed format of a line of the access log.
///
/// `common`, `combined` and `json` name predefined formats. Any other text is a format with
/// directives. They have the same meaning as in Apache's `mod_log_config`; `%{iso}t` is an
/// addition. The guide lists them (docs/guide/logs.md). A format that begins with `{` writes JSON:
/// its text values must be in quotes and are escaped as JSON strings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Format {
    pub(crate) parts: Vec<Part>,
    pub(crate) escaping: Escaping,
    /// Whether a line contains a duration.
    wants_duration: bool,
    /// Whether a line contains fields of the response.
    wants_reply_head: bool,
    /// The parts of targets that no line shows.
    pub(crate) secrets: SecretTargets,
}

/// A part of each line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Constant text.
    Text(Box<str>),
    /// A value of the request or the response.
    Value {
        directive: Directive,
        /// Bytes to escape within the value.
        delimiters: Delimiters,
    },
}

/// The value that a directive logs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Directive {
    /// `%h`, `%a`: the client's address. The server never looks up names.
    Client,
    /// `%{remote}p`: the client's port.
    ClientPort,
    /// `%l`: the user according to the Identification Protocol (RFC 1413), which the server does
    /// not support.
    Ident,
    /// `%u`: the user's name.
    User,
    /// `%t`: the time at which the request arrived.
    Time,
    /// `%{iso}t`: the same time, as RFC 3339 writes it.
    IsoTime,
    /// `%r`: the request line.
    RequestLine,
    /// `%m`: the method.
    Method,
    /// `%U`: the path as the client sent it, without the query.
    Path,
    /// `%q`: the query with its `?`.
    Query,
    /// `%H`: the HTTP version.
    Version,
    /// `%v`: the requested host, without its port.
    Host,
    /// `%s`: the status.
    Status,
    /// `%b`: bytes of content, or `-` for an empty response.
    SizeOrDash,
    /// `%B`: bytes of content.
    Size,
    /// `%D`, `%T`, `%{ms}T`: the time from request to response. The value is the unit in
    /// microseconds.
    Duration(u64),
    /// `%{Name}i`: a header field of the request.
    RequestField(Box<str>),
    /// `%{Name}o`: a header field of the response.
    ResponseField(Box<str>),
}

const COMMON: &str = r#"%h %l %u %t "%r" %>s %b"#;
const COMBINED: &str = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#;
const JSON: &str = concat!(
    r#"{"time":"%{iso}t","peer":"%a","user":"%u","host":"%v","method":"%m","target":"%U%q","#,
    r#""version":"%H","status":%s,"bytes":%B,"microseconds":%D,"#,
    r#""referer":"%{Referer}i","agent":"%{User-Agent}i"}"#
);
/// The list of directives in error messages.
const KNOWN: &str = "%a %b %B %D %h %H %l %m %{remote}p %q %r %s %t %{iso}t %T %{ms}T %u %U %v \
                     %{Header}i %{Header}o %%";

impl Format {
    /// Masks the secrets of these targets in each line.
    #[must_use]
    pub fn with_secrets(self, secrets: SecretTargets) -> Self {
        Self { secrets, ..self }
    }

    /// Parses a format.
    ///
    /// # Errors
    ///
    /// A message with the fault, its position, and the known directives.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = match text {
            "common" => COMMON,
            "combined" => COMBINED,
            "json" => JSON,
            custom => custom,
        };
        if let Some(at) = text.find(|letter: char| letter.is_control() && letter != '\t') {
            return Err(format!(
                "a format must not contain the control character at position {at}"
            ));
        }
        let escaping = if text.starts_with('{') { Escaping::Json } else { Escaping::Classic };
        let mut parts = Vec::new();
        let mut quoted = false;
        // The byte that separates a value from the next.
        let mut separator = b' ';
        let mut rest = text;
        while !rest.is_empty() {
            let (plain, after) = rest.split_at(rest.find('%').unwrap_or(rest.len()));
            push_text(&mut parts, plain);
            quoted ^= plain.bytes().filter(|byte| *byte == b'"').count() % 2 == 1;
            rest = after;
            if rest.is_empty() {
                break;
            }
            let position = text.len() - rest.len();
            let (directive, length) =
                parse_directive(rest).map_err(|fault| fault.message(rest, position))?;
            rest = &rest[length..];
            let Some(directive) = directive else {
                push_text(&mut parts, "%");
                continue;
            };
            if escaping == Escaping::Json && !quoted && !directive.is_number() {
                let text = &text[position..position + length];
                return Err(format!("`{text}` at position {position} must be in quotes"));
            }
            // In quotes, only a quote ends a value.
            let mut delimiters = QUOTE;
            if !quoted {
                // After a `%`, which begins the next value, and at the end of the format, the
                // separator of the previous value applies.
                separator = rest.bytes().next().filter(|byte| *byte != b'%').unwrap_or(separator);
                // A log reader expects spaces within brackets.
                delimiters = [b' ', separator, b'[', b']'];
            }
            parts.push(Part::Value { directive, delimiters });
        }
        let directives = || parts.iter().filter_map(Part::directive);
        if directives().next().is_none() {
            return Err(format!(
                "`{text}` is not a format; use common, combined, json, or a text with {KNOWN}"
            ));
        }
        let wants_duration = directives().any(|each| matches!(each, Directive::Duration(_)));
        let wants_reply_head = directives().any(|each| matches!(each, Directive::ResponseField(_)));
        let secrets = SecretTargets::default();
        Ok(Self { parts, escaping, wants_duration, wants_reply_head, secrets })
    }

    /// Whether a line contains the time from request to response, which requires a clock that is
    /// finer than the clock of an event loop's turn.
    pub const fn wants_duration(&self) -> bool {
        self.wants_duration
    }

    /// Whether a line contains fields of the response's head.
    pub const fn wants_reply_head(&self) -> bool {
        self.wants_reply_head
    }

    /// Returns the function that writes a line about dropped lines in this format.
    pub const fn gap(&self) -> Gap {
        match self.escaping {
            Escaping::Classic => write_classic_gap,
            Escaping::Json => write_json_gap,
        }
    }
}

impl Default for Format {
    /// The format `combined`, which every log reader supports.
    fn default() -> Self {
        Self::parse("combined").expect("`combined` is valid, which a test checks")
    }
}

impl Part {
    const fn directive(&self) -> Option<&Directive> {
        match self {
            Self::Text(_) => None,
            Self::Value { directive, .. } => Some(directive),
        }
    }
}

impl Directive {
    const fn is_number(&self) -> bool {
        matches!(self, Self::Status | Self::Size | Self::Duration(_) | Self::ClientPort)
    }
}

enum Fault {
    /// The first bytes, as many as the value, are not a known directive.
    Unknown(usize),
    /// A `{` without its `}`.
    Unclosed,
    /// The text between the braces is not the name of a field. The value is the directive's length.
    InvalidName(usize),
}

impl Fault {
    fn message(&self, rest: &str, position: usize) -> String {
        match self {
            Self::Unknown(length) => {
                let text = &rest[..*length];
                format!("unknown directive `{text}` at position {position}; use {KNOWN}")
            }
            Self::Unclosed => format!("the `{{` at position {} has no `}}`", position + 1),
            Self::InvalidName(length) => {
                let text = &rest[..*length];
                format!("`{text}` at position {position} does not name a header field")
            }
        }
    }
}

/// Parses the directive at the start of `text` and returns it with its length; `None` is a literal
/// `%`.
fn parse_directive(text: &str) -> Result<(Option<Directive>, usize), Fault> {
    let mut at = 1;
    // In Apache, `<` and `>` select the status before or after an internal redirect. This server
    // has no internal redirects, so both mean the status.
    if text[at..].starts_with(['<', '>']) {
        at += 1;
    }
    let mut argument = None;
    if let Some(inner) = text[at..].strip_prefix('{') {
        let end = inner.find('}').ok_or(Fault::Unclosed)?;
        argument = Some(&inner[..end]);
        at += end + 2;
    }
    let letter = text[at..].chars().next();
    let length = at + letter.map_or(0, char::len_utf8);
    let directive = match (letter.unwrap_or(' '), argument) {
        ('%', None) if at == 1 => return Ok((None, length)),
        ('a' | 'h', None) => Directive::Client,
        ('b', None) => Directive::SizeOrDash,
        ('B', None) => Directive::Size,
        ('D', None) | ('T', Some("us")) => Directive::Duration(1),
        ('H', None) => Directive::Version,
        ('l', None) => Directive::Ident,
        ('m', None) => Directive::Method,
        ('p', Some("remote")) => Directive::ClientPort,
        ('q', None) => Directive::Query,
        ('r', None) => Directive::RequestLine,
        ('s', None) => Directive::Status,
        ('t', None) => Directive::Time,
        ('t', Some("iso")) => Directive::IsoTime,
        ('T', Some("ms")) => Directive::Duration(1000),
        ('T', None | Some("s")) => Directive::Duration(1_000_000),
        ('u', None) => Directive::User,
        ('U', None) => Directive::Path,
        ('v', None) => Directive::Host,
        ('i' | 'o', Some(name)) if !is_token(name) => return Err(Fault::InvalidName(length)),
        ('i', Some(name)) => Directive::RequestField(name.into()),
        ('o', Some(name)) => Directive::ResponseField(name.into()),
        _ => return Err(Fault::Unknown(length)),
    };
    Ok((Some(directive), length))
}

/// Whether `name` is a token of HTTP (RFC 9110 section 5.6.2).
fn is_token(name: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token_byte)
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    if let Some(Part::Text(before)) = parts.last_mut() {
        *before = [&**before, text].concat().into();
    } else if !text.is_empty() {
        parts.push(Part::Text(text.into()));
    }
}

/// Writes a gap as a comment: log readers skip it, and the line of a request never begins with `#`.
fn write_classic_gap(lines: &mut Vec<u8>, dropped: u64) {
    lines.extend_from_slice(b"# ");
    lines.extend_from_slice(Stamp::now().iso());
    lines.extend_from_slice(b" dropped ");
    push_number(lines, dropped);
    lines.extend_from_slice(b" lines\n");
}

/// Writes a gap as a separate object, without the members of a request.
fn write_json_gap(lines: &mut Vec<u8>, dropped: u64) {
    lines.extend_from_slice(b"{\"time\":\"");
    lines.extend_from_slice(Stamp::now().iso());
    lines.extend_from_slice(b"\",\"dropped\":");
    push_number(lines, dropped);
    lines.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        let message = Format::parse(text).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn accepts_named_formats() {
        for (name, parts) in [("common", 13), ("combined", 18), ("json", 26)] {
            let format = Format::parse(name).unwrap();
            assert_eq!(format.parts.len(), parts, "{name}");
            assert_eq!(
                (format.wants_duration(), format.wants_reply_head()),
                (name == "json", false)
            );
        }
        assert!(Format::parse("%{server}o").unwrap().wants_reply_head());
        assert_eq!(Format::default(), Format::parse("combined").unwrap());
    }

    #[test]
    fn names_directive_position_and_alternatives_in_errors() {
        check_error("%h %Z", "unknown directive `%Z` at position 3; use %a %b");
        check_error("%{Referer}x", "unknown directive `%{Referer}x` at position 0");
        check_error("a%", "unknown directive `%` at position 1");
        check_error("%h %{Referer", "the `{` at position 4 has no `}`");
        check_error("%{}i", "`%{}i` at position 0 does not name a header field");
        check_error("%{a b}o", "does not name a header field");
        check_error("combind", "`combind` is not a format; use common, combined, json");
        check_error("", "is not a format");
        check_error("%h\n%u", "the control character at position 2");
        check_error(r#"{"a":%u}"#, "`%u` at position 5 must be in quotes");
        check_error("%>%", "unknown directive `%>%` at position 0");
        check_error("%\u{e4}", "`%\u{e4}` at position 0");
    }

    #[test]
    fn finds_delimiters_around_a_value() {
        let format = Format::parse(r#"%u|"%u"|%u%u"#).unwrap();
        let delimiters = format.parts.iter().filter_map(|part| match part {
            Part::Value { delimiters, .. } => Some(*delimiters),
            Part::Text(_) => None,
        });
        assert!(delimiters.eq([*b" |[]", QUOTE, *b" |[]", *b" |[]"]));
    }

    #[test]
    fn writes_percent_sign() {
        let format = Format::parse("100%% %s%%").unwrap();
        let texts = format.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            Part::Value { .. } => None,
        });
        assert!(texts.eq(["100% ", "%"]));
    }

    proptest! {
        #[test]
        fn parses_or_rejects_any_text(text in r#"(%|[<>{}"a-zA-Z| ]|\PC){0,40}"#) {
            let _ = Format::parse(&text);
        }
    }

    #[test]
    fn writes_gap_unlike_a_request_line() {
        let mut lines = Vec::new();
        write_classic_gap(&mut lines, 12);
        write_json_gap(&mut lines, 34);
        let text = String::from_utf8(lines).unwrap();
        let (classic, json) = text.split_once('\n').unwrap();
        assert!(classic.starts_with("# 2") && classic.ends_with("Z dropped 12 lines"), "{classic}");
        assert!(
            json.starts_with("{\"time\":\"2") && json.ends_with("Z\",\"dropped\":34}\n"),
            "{json}"
        );
    }
}
