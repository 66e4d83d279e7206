//! A parser for `multipart/form-data` bodies (RFC 7578).

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use bine_server::Spool;

use super::Rejection;
use crate::visitor_message::VisitorMessage;

/// The most parts of a body.
const MAX_PARTS: usize = 100;
/// The most bytes of a part's header fields.
const MAX_HEAD: usize = 4096;
/// The most characters of a boundary (RFC 2046 section 5.1.1).
const MAX_BOUNDARY: usize = 70;

/// Bytes of a body on disk that are read at a time.
const WINDOW: usize = 64 * 1024;

/// One part: a field of the form, or a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FormPart {
    pub(super) name: String,
    /// Only files have one. Browsers send an empty name if no file was chosen.
    pub(super) file_name: Option<String>,
    pub(super) media_type: Option<String>,
    /// The position of its content in the body.
    pub(super) content: Range<u64>,
}

/// A body that the parser reads.
pub(super) trait BodySource {
    /// Returns bytes from offset `from`: at least `wanted`, or all that remain.
    fn look(&mut self, from: u64, wanted: usize) -> io::Result<&[u8]>;
}

impl BodySource for &[u8] {
    fn look(&mut self, from: u64, _wanted: usize) -> io::Result<&[u8]> {
        Ok(self.get(from as usize..).unwrap_or_default())
    }
}

/// A body on disk, read one window at a time.
pub(super) struct SpooledBody<'s> {
    spool: &'s Spool,
    window: Vec<u8>,
    window_start: u64,
}

impl<'s> SpooledBody<'s> {
    pub(super) const fn new(spool: &'s Spool) -> Self {
        Self { spool, window: Vec::new(), window_start: 0 }
    }
}

impl BodySource for SpooledBody<'_> {
    fn look(&mut self, from: u64, wanted: usize) -> io::Result<&[u8]> {
        let has = from >= self.window_start
            && from - self.window_start + wanted as u64 <= self.window.len() as u64;
        if !has {
            let left = self.spool.length().saturating_sub(from);
            self.window.resize(left.min(WINDOW.max(wanted) as u64) as usize, 0);
            self.window_start = from;
            read_exactly(self.spool, &mut self.window, from)?;
        }
        Ok(&self.window[(from - self.window_start) as usize..])
    }
}

/// Fills `buffer` from `offset`.
pub(super) fn read_exactly(
    spool: &Spool,
    mut buffer: &mut [u8],
    mut offset: u64,
) -> io::Result<()> {
    while !buffer.is_empty() {
        let count = spool.read_at(buffer, offset)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer = &mut buffer[count..];
        offset += count as u64;
    }
    Ok(())
}

/// The parts of a body, up to the first invalid one.
pub(super) struct Parts<S> {
    source: S,
    /// A line break, two dashes and the boundary.
    delimiter: Vec<u8>,
    /// The offset after the last delimiter found.
    at: u64,
    count: usize,
    is_finished: bool,
}

/// The boundary of a body with this media type, or `None` if it is not a multipart form.
pub(super) fn boundary(content_type: &str) -> Option<Cow<'_, str>> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary")?;
    (1..=MAX_BOUNDARY).contains(&boundary.len()).then_some(boundary)
}

impl<S: BodySource> Parts<S> {
    /// Creates a parser for `source`.
    pub(super) fn new(boundary: &str, mut source: S) -> Result<Self, String> {
        let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
        // No line break precedes the first delimiter, unless there is a preamble.
        let first = source.look(0, delimiter.len() - 2).map_err(|_| UNREADABLE)?;
        let at = if first.starts_with(&delimiter[2..]) {
            delimiter.len() as u64 - 2
        } else {
            let place = find_in(&mut source, 0, &delimiter).map_err(|_| UNREADABLE)?;
            place.ok_or("has no boundary in its body")? + delimiter.len() as u64
        };
        Ok(Self { source, delimiter, at, count: 0, is_finished: false })
    }

    fn part(&mut self) -> Result<Option<FormPart>, &'static str> {
        let rest = self.source.look(self.at, MAX_HEAD).map_err(|_| UNREADABLE)?;
        if rest.starts_with(b"--") {
            return Ok(None);
        }
        if self.count == MAX_PARTS {
            return Err("has more than a hundred parts");
        }
        self.count += 1;
        // White space may follow a boundary (RFC 2046 section 5.1.1).
        let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let after = &rest[padding..];
        if !after.starts_with(b"\r\n") {
            return Err("has a broken boundary");
        }
        // Searching from the line break before the fields also finds the end of a part without
        // fields.
        let head_end = find(&after[..after.len().min(MAX_HEAD)], b"\r\n\r\n");
        let head_end = head_end.ok_or("has a part whose fields do not end")?;
        let head = str::from_utf8(&after[..head_end])
            .map_err(|_| "has a part whose fields are not UTF-8 text")?;
        let (name, file_name) = disposition(head).ok_or("has a part without a name")?;
        let (name, file_name) = (name.into_owned(), file_name.map(Cow::into_owned));
        let media_type = field(head, "content-type").map(str::to_owned);
        // A part without content shares its line break with the end of its fields.
        let line = self.at + (padding + head_end) as u64 + 2;
        let end = find_in(&mut self.source, line, &self.delimiter).map_err(|_| UNREADABLE)?;
        let end = end.ok_or("has a part that does not end")?;
        self.at = end + self.delimiter.len() as u64;
        let begin = line + 2;
        Ok(Some(FormPart { name, file_name, media_type, content: begin.min(end)..end }))
    }

    /// The content of a part, which must be from this body.
    pub(super) fn content(&mut self, part: &FormPart) -> io::Result<&[u8]> {
        let length = (part.content.end - part.content.start) as usize;
        Ok(&self.source.look(part.content.start, length)?[..length])
    }
}

impl<S: BodySource> Iterator for Parts<S> {
    type Item = Result<FormPart, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_finished {
            return None;
        }
        let part = self.part().transpose();
        self.is_finished = !matches!(part, Some(Ok(_)));
        part
    }
}

/// Checks properties that hold for any body and boundary, for fuzzing: the parser finds the same
/// parts however few bytes it sees at a time, and the parts are in order and do not overlap.
#[doc(hidden)]
pub fn check_form(boundary: &str, body: &[u8]) {
    let read = |source: WindowedBody<'_>| -> Vec<Result<FormPart, String>> {
        match Parts::new(boundary, source) {
            Ok(parts) => parts.map(|part| part.map_err(str::to_owned)).collect(),
            Err(reason) => vec![Err(reason)],
        }
    };
    let whole = read(WindowedBody { bytes: body, more: usize::MAX });
    assert_eq!(read(WindowedBody { bytes: body, more: 0 }), whole);
    let mut end = 0;
    for part in whole.iter().flatten() {
        assert!(end <= part.content.start && part.content.start <= part.content.end);
        end = part.content.end;
    }
    assert!(end <= body.len() as u64);
}

/// A body that shows the requested bytes plus at most `more`.
struct WindowedBody<'b> {
    bytes: &'b [u8],
    more: usize,
}

impl BodySource for WindowedBody<'_> {
    fn look(&mut self, from: u64, wanted: usize) -> io::Result<&[u8]> {
        let rest = self.bytes.get(from as usize..).unwrap_or_default();
        Ok(&rest[..rest.len().min(wanted.saturating_add(self.more))])
    }
}

/// The parts of `body`, for the argument called `name`.
pub(super) fn parts<S: BodySource>(
    boundary: &str,
    body: S,
    name: &'static str,
) -> Result<Parts<S>, Rejection> {
    Parts::new(boundary, body).map_err(|reason| broken(name, &reason))
}

/// The first part called `name`.
pub(super) fn find_part<S: BodySource>(
    parts: &mut Parts<S>,
    name: &'static str,
) -> Result<Option<FormPart>, Rejection> {
    for part in parts {
        let part = part.map_err(|reason| broken(name, reason))?;
        if part.name == name {
            return Ok(Some(part));
        }
    }
    Ok(None)
}

fn broken(name: &'static str, reason: &str) -> Rejection {
    Rejection::invalid(name, VisitorMessage::BrokenForm { reason: reason.to_owned() })
}

/// The error for a body that cannot be read back from disk.
const UNREADABLE: &str = "could not be read back from disk";

/// The offset of `needle`, which begins with a carriage return, in `source` at or after `from`.
fn find_in(source: &mut impl BodySource, mut from: u64, needle: &[u8]) -> io::Result<Option<u64>> {
    loop {
        let window = source.look(from, needle.len())?;
        if let Some(place) = find(window, needle) {
            return Ok(Some(from + place as u64));
        }
        if window.len() < needle.len() {
            return Ok(None);
        }
        // The end of this window may be the beginning of the needle.
        from += (window.len() - (needle.len() - 1)) as u64;
    }
}

/// The parameters of Content-Disposition: the part's name, and the file's name.
fn disposition(head: &str) -> Option<(Cow<'_, str>, Option<Cow<'_, str>>)> {
    let value = field(head, "content-disposition")?;
    let (kind, parameters) = value.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return None;
    }
    Some((parameter(parameters, "name")?, parameter(parameters, "filename")))
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.split("\r\n").find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// The value of a parameter, quoted or not. Browsers write a quote in a name as `%22` (WHATWG HTML,
/// multipart/form-data encoding), older programs as `\"`.
fn parameter<'p>(mut parameters: &'p str, name: &str) -> Option<Cow<'p, str>> {
    loop {
        parameters = parameters.trim_start_matches([' ', '\t', ';']);
        let (key, rest) = parameters.split_once('=')?;
        let (value, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = end_of_quoted(quoted)?;
                (unquoted(&quoted[..end]), &quoted[end + 1..])
            }
            None => {
                let end = rest.find([';', ' ', '\t']).unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(value);
        }
        parameters = behind;
    }
}

fn end_of_quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

fn unquoted(text: &str) -> Cow<'_, str> {
    if !text.contains("\\\"") && !text.contains('%') {
        return Cow::Borrowed(text);
    }
    // A backslash is an escape only before a quote: file names may contain one.
    let text = text.replace("\\\"", "\"").replace("%22", "\"");
    Cow::Owned(text.replace("%0D", "\r").replace("%0A", "\n"))
}

/// The offset of `needle`, which begins with a carriage return, in `bytes`.
fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let place = from + bytes[from..].iter().position(|&byte| byte == b'\r')?;
        if bytes[place..].starts_with(needle) {
            return Some(place);
        }
        from = place + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts as text, one in a line.
    fn read(body: &str) -> String {
        let whole = read_from(body, body.as_bytes());
        // The result does not depend on the size of the reads.
        for more in [0, 1, 7] {
            assert_eq!(read_from(body, WindowedBody { bytes: body.as_bytes(), more }), whole);
        }
        whole
    }

    fn read_from(body: &str, source: impl BodySource) -> String {
        let parts = match Parts::new("x-y", source) {
            Ok(parts) => parts,
            Err(reason) => return reason,
        };
        let lines = parts.map(|part| match part {
            Ok(FormPart { name, file_name, media_type, content }) => {
                let content = &body[content.start as usize..content.end as usize];
                let none = || "-".to_owned();
                format!(
                    "{name}|{}|{}|{content}",
                    file_name.unwrap_or_else(none),
                    media_type.unwrap_or_else(none)
                )
            }
            Err(reason) => reason.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    const FIELD: &str = "Content-Disposition: form-data; name=\"a\"\r\n\r\n";

    #[test]
    fn distinguishes_fields_from_files() {
        let body = format!(
            "--x-y\r\n{FIELD}one\r\n--x-y\r\ncontent-disposition: form-data; name=b; filename=\"c d.txt\"\r\n\
             Content-Type: text/plain\r\n\r\ntwo\r\nlines\r\n--x-y--\r\n"
        );
        assert_eq!(read(&body), "a|-|-|one\nb|c d.txt|text/plain|two\r\nlines");
    }

    #[test]
    fn accepts_content_that_resembles_a_boundary() {
        let body = format!("--x-y\r\n{FIELD}\r\n--x\r\r\n-x-y --x-y\r\n--x-y--");
        assert_eq!(read(&body), "a|-|-|\r\n--x\r\r\n-x-y --x-y");
    }

    #[test]
    fn accepts_empty_parts_and_skips_preamble_and_epilogue() {
        let body = format!("preamble\r\n--x-y \t\r\n{FIELD}\r\n--x-y--epilogue");
        assert_eq!(read(&body), "a|-|-|");
        assert_eq!(read("--x-y--"), "");
        let short = format!("--x-y\r\n{FIELD}--x-y--");
        assert_eq!(
            read(&short),
            "a|-|-|",
            "the end of the fields is the line in front of the boundary"
        );
    }

    #[test]
    fn names_the_fault_of_a_broken_body() {
        for (body, expected) in [
            ("", "has no boundary in its body"),
            ("--x-yz\r\n", "has a broken boundary"),
            (
                "--x-y\r\nContent-Disposition: form-data; name=a\r\n",
                "has a part whose fields do not end",
            ),
            ("--x-y\r\n\r\nvalue\r\n--x-y--", "has a part without a name"),
            (
                "--x-y\r\nContent-Disposition: inline; name=a\r\n\r\nv\r\n--x-y--",
                "has a part without a name",
            ),
        ] {
            assert_eq!(read(body), expected, "{body:?}");
        }
        assert_eq!(read(&format!("--x-y\r\n{FIELD}value")), "has a part that does not end");
        let many = format!("--x-y\r\n{FIELD}v\r\n").repeat(101) + "--x-y--";
        assert!(read(&many).ends_with("has more than a hundred parts"));
    }

    #[test]
    fn finds_boundaries_quoted_or_not() {
        for (kind, expected) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            ("Multipart/Form-Data;charset=utf-8; BOUNDARY=\"a b\"", Some("a b")),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("multipart/mixed; boundary=abc", None),
            ("text/plain", None),
        ] {
            assert_eq!(boundary(kind).as_deref(), expected, "{kind}");
        }
    }

    #[test]
    fn accepts_escaped_quotes_and_semicolons_in_names() {
        assert_eq!(
            parameter(" name=\"a\\\"b%22;c\"; filename=d", "name").as_deref(),
            Some("a\"b\";c")
        );
        assert_eq!(
            parameter(" name=\"a;filename=x\"; filename=d", "filename").as_deref(),
            Some("d")
        );
        assert_eq!(parameter("name=\"a", "name"), None);
    }

    /// Any generated parts are parsed back unchanged, and a truncated body does not panic.
    #[test]
    fn parses_generated_parts_unchanged() {
        let mut state = 7_u32;
        let mut draw = |bound: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % bound
        };
        for _ in 0..2_000 {
            let contents: Vec<String> = (0..draw(4))
                .map(|_| {
                    (0..draw(12))
                        .map(|_| ["\r", "\n", "-", "x", "y", "--x-", "\r\n"][draw(7) as usize])
                        .collect()
                })
                .filter(|content: &String| !format!("\r\n{content}\r\n").contains("\r\n--x-y"))
                .collect();
            let mut pieces = Vec::new();
            for content in &contents {
                pieces.extend(["--x-y\r\n", FIELD, content, "\r\n"]);
            }
            let body = pieces.concat() + "--x-y--\r\n";
            let expected: Vec<_> =
                contents.iter().map(|content| format!("a|-|-|{content}")).collect();
            assert_eq!(read(&body), expected.join("\n"));
            read(&body[..draw(body.len() as u32) as usize]);
        }
    }
}
