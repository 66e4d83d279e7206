//! Decides which formats of an access log there are, and turns one into the parts that each line
//! is put together from.

use crate::escape::{Ends, Escaping, QUOTE, push_number};
use crate::stamp::Stamp;
use crate::writer::Gap;

/// What a line of an access log tells, understood once.
///
/// `common`, `combined` and `json` are formats by name; any other is a text with directives, which
/// mean what they have meant since the first servers (see docs/guide/logs.md). A format that begins
/// with `{` writes JSON: its texts stand between the quotes of the format and are escaped as JSON
/// strings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Format {
    pub(crate) parts: Vec<Part>,
    pub(crate) escaping: Escaping,
    /// A clock finer than the turn's must be read.
    wants_duration: bool,
    /// The reply's own fields are told.
    wants_reply_head: bool,
}

/// A piece of each line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The same in every line.
    Text(Box<str>),
    /// Something of the request or the reply.
    Value {
        what: Directive,
        /// What a reader takes for the end of the value, or for more than a part of it.
        ends: Ends,
    },
}

/// What a directive stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Directive {
    /// `%h`, `%a`: the peer's address. Names are never looked up.
    Peer,
    /// `%{remote}p`.
    PeerPort,
    /// `%l`: what RFC 1413 would tell, which nobody asks.
    Ident,
    /// `%u`.
    User,
    /// `%t`: when the request arrived.
    Time,
    /// `%{iso}t`.
    IsoTime,
    /// `%r`.
    RequestLine,
    /// `%m`.
    Method,
    /// `%U`: as it was sent, without the query.
    Path,
    /// `%q`: with its `?`.
    Query,
    /// `%H`.
    Version,
    /// `%v`: the host that was asked for, without its port.
    Host,
    /// `%s`.
    Status,
    /// `%b`: of content, `-` for none.
    SizeOrDash,
    /// `%B`.
    Size,
    /// `%D`, `%T`, `%{ms}T`: from request to reply, in units of so many microseconds.
    Duration(u64),
    /// `%{Name}i`.
    RequestField(Box<str>),
    /// `%{Name}o`.
    ReplyField(Box<str>),
}

const COMMON: &str = r#"%h %l %u %t "%r" %>s %b"#;
const COMBINED: &str = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#;
const JSON: &str = concat!(
    r#"{"time":"%{iso}t","peer":"%a","user":"%u","host":"%v","method":"%m","target":"%U%q","#,
    r#""version":"%H","status":%s,"bytes":%B,"microseconds":%D,"#,
    r#""referer":"%{Referer}i","agent":"%{User-Agent}i"}"#
);
/// For whoever wrote another.
const KNOWN: &str = "%a %b %B %D %h %H %l %m %{remote}p %q %r %s %t %{iso}t %T %{ms}T %u %U %v \
                     %{Header}i %{Header}o %%";

impl Format {
    /// Understands a format.
    ///
    /// # Errors
    ///
    /// What is wrong, where, and what is known.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = match text {
            "common" => COMMON,
            "combined" => COMBINED,
            "json" => JSON,
            own => own,
        };
        if let Some(at) = text.find(|letter: char| letter.is_control() && letter != '\t') {
            return Err(format!("a control character at position {at}; a line is one line"));
        }
        let escaping = if text.starts_with('{') { Escaping::Json } else { Escaping::Classic };
        let mut parts = Vec::new();
        let mut quoted = false;
        // What stands between one value and the next.
        let mut bar = b' ';
        let mut rest = text;
        while !rest.is_empty() {
            let (plain, behind) = rest.split_at(rest.find('%').unwrap_or(rest.len()));
            push_text(&mut parts, plain);
            quoted ^= plain.bytes().filter(|byte| *byte == b'"').count() % 2 == 1;
            rest = behind;
            if rest.is_empty() {
                break;
            }
            let position = text.len() - rest.len();
            let (what, length) = directive(rest).map_err(|fault| fault.at(rest, position))?;
            rest = &rest[length..];
            let Some(what) = what else {
                push_text(&mut parts, "%");
                continue;
            };
            if escaping == Escaping::Json && !quoted && !what.is_number() {
                let directive = &text[position..position + length];
                return Err(format!("`{directive}` at position {position} needs quotes around it"));
            }
            // Between quotes nothing but a quote ends a value.
            let mut ends = QUOTE;
            if !quoted {
                // A `%` begins another value; the last ends where those before it do.
                bar = rest.bytes().next().filter(|byte| *byte != b'%').unwrap_or(bar);
                // A bracket begins what may hold spaces.
                ends = [b' ', bar, b'[', b']'];
            }
            parts.push(Part::Value { what, ends });
        }
        let whats = || parts.iter().filter_map(Part::what);
        if whats().next().is_none() {
            return Err(format!(
                "`{text}` is no format; say common, combined, json, or one with {KNOWN}"
            ));
        }
        let wants_duration = whats().any(|what| matches!(what, Directive::Duration(_)));
        let wants_reply_head = whats().any(|what| matches!(what, Directive::ReplyField(_)));
        Ok(Self { parts, escaping, wants_duration, wants_reply_head })
    }

    /// Whether a line contains the time from request to reply, so that a clock finer than the turn's must be read.
    pub const fn wants_duration(&self) -> bool {
        self.wants_duration
    }

    /// Whether a line contains fields of the reply's head.
    pub const fn wants_reply_head(&self) -> bool {
        self.wants_reply_head
    }

    /// Writes the line that stands in a log of this format in place of dropped lines.
    pub const fn gap(&self) -> Gap {
        match self.escaping {
            Escaping::Classic => classic_gap,
            Escaping::Json => json_gap,
        }
    }
}

impl Default for Format {
    /// `combined`, which every log reader knows.
    fn default() -> Self {
        Self::parse("combined").expect("a test has parsed it")
    }
}

impl Part {
    const fn what(&self) -> Option<&Directive> {
        match self {
            Self::Text(_) => None,
            Self::Value { what, .. } => Some(what),
        }
    }
}

impl Directive {
    const fn is_number(&self) -> bool {
        matches!(self, Self::Status | Self::Size | Self::Duration(_) | Self::PeerPort)
    }
}

enum Fault {
    /// So many bytes are no directive.
    Unknown(usize),
    /// A `{` without its `}`.
    Open,
    /// What stands between the braces is no field's name.
    NoName(usize),
}

impl Fault {
    fn at(&self, rest: &str, position: usize) -> String {
        match self {
            Self::Unknown(length) => {
                let text = &rest[..*length];
                format!("`{text}` at position {position} is no directive; known are {KNOWN}")
            }
            Self::Open => format!("the `{{` at position {} has no `}}`", position + 1),
            Self::NoName(length) => {
                let text = &rest[..*length];
                format!("`{text}` at position {position} names no header field")
            }
        }
    }
}

/// The directive at the front of `text` and its length; `None` stands for a `%` itself.
fn directive(text: &str) -> Result<(Option<Directive>, usize), Fault> {
    let mut at = 1;
    // Of an internal redirect the first (`<`) or the last (`>`) status: here there is one.
    if text[at..].starts_with(['<', '>']) {
        at += 1;
    }
    let mut argument = None;
    if let Some(inner) = text[at..].strip_prefix('{') {
        let end = inner.find('}').ok_or(Fault::Open)?;
        argument = Some(&inner[..end]);
        at += end + 2;
    }
    let letter = text[at..].chars().next();
    let length = at + letter.map_or(0, char::len_utf8);
    let what = match (letter.unwrap_or(' '), argument) {
        ('%', None) if at == 1 => return Ok((None, length)),
        ('a' | 'h', None) => Directive::Peer,
        ('b', None) => Directive::SizeOrDash,
        ('B', None) => Directive::Size,
        ('D', None) | ('T', Some("us")) => Directive::Duration(1),
        ('H', None) => Directive::Version,
        ('l', None) => Directive::Ident,
        ('m', None) => Directive::Method,
        ('p', Some("remote")) => Directive::PeerPort,
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
        ('i' | 'o', Some(name)) if !is_token(name) => return Err(Fault::NoName(length)),
        ('i', Some(name)) => Directive::RequestField(name.into()),
        ('o', Some(name)) => Directive::ReplyField(name.into()),
        _ => return Err(Fault::Unknown(length)),
    };
    Ok((Some(what), length))
}

/// RFC 9110 section 5.6.2.
fn is_token(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_letter)
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    if let Some(Part::Text(before)) = parts.last_mut() {
        *before = [&**before, text].concat().into();
    } else if !text.is_empty() {
        parts.push(Part::Text(text.into()));
    }
}

/// A comment: log readers pass over it, and no request's line begins like it.
fn classic_gap(lines: &mut Vec<u8>, dropped: u64) {
    lines.extend_from_slice(b"# ");
    lines.extend_from_slice(Stamp::now().iso());
    lines.extend_from_slice(b" dropped ");
    push_number(lines, dropped);
    lines.extend_from_slice(b" lines\n");
}

/// An object of its own, without the members of a request's.
fn json_gap(lines: &mut Vec<u8>, dropped: u64) {
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
    fn refused(text: &str, expected: &str) {
        let message = Format::parse(text).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn accepts_named_formats() {
        for (name, parts) in [("common", 13), ("combined", 18), ("json", 26)] {
            let format = Format::parse(name).unwrap();
            assert_eq!(format.parts.len(), parts, "{name}");
            assert_eq!((format.wants_duration, format.wants_reply_head), (name == "json", false));
        }
        assert_eq!(Format::default(), Format::parse("combined").unwrap());
    }

    #[test]
    fn names_directive_position_and_alternatives_in_errors() {
        refused("%h %Z", "`%Z` at position 3 is no directive; known are %a %b");
        refused("%{Referer}x", "`%{Referer}x` at position 0 is no directive");
        refused("a%", "`%` at position 1 is no directive");
        refused("%h %{Referer", "the `{` at position 4 has no `}`");
        refused("%{}i", "`%{}i` at position 0 names no header field");
        refused("%{a b}o", "names no header field");
        refused("combind", "`combind` is no format; say common, combined, json");
        refused("", "is no format");
        refused("%h\n%u", "a control character at position 2");
        refused(r#"{"a":%u}"#, "`%u` at position 5 needs quotes");
        refused("%\u{e4}", "`%\u{e4}` at position 0");
    }

    #[test]
    fn finds_delimiters_around_a_value() {
        let format = Format::parse(r#"%u|"%u"|%u%u"#).unwrap();
        let ends = format.parts.iter().filter_map(|part| match part {
            Part::Value { ends, .. } => Some(*ends),
            Part::Text(_) => None,
        });
        assert!(ends.eq([*b" |[]", QUOTE, *b" |[]", *b" |[]"]));
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
        classic_gap(&mut lines, 12);
        json_gap(&mut lines, 34);
        let text = String::from_utf8(lines).unwrap();
        let (classic, json) = text.split_once('\n').unwrap();
        assert!(classic.starts_with("# 2") && classic.ends_with("Z dropped 12 lines"), "{classic}");
        assert!(
            json.starts_with("{\"time\":\"2") && json.ends_with("Z\",\"dropped\":34}\n"),
            "{json}"
        );
    }
}
