//! Decides where the parts of a `multipart/form-data` body begin and end, and what each is called (RFC 7578).

use std::borrow::Cow;

/// Parts that a body may have.
const MOST_PARTS: usize = 100;
/// Bytes of the fields above a part.
const MOST_HEAD: usize = 4096;
/// Characters of a boundary (RFC 2046 section 5.1.1).
const MOST_BOUNDARY: usize = 70;

/// One part: a field of the form, or a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Part<'b> {
    pub(super) name: Cow<'b, str>,
    /// Files alone have one; browsers send an empty one for no file.
    pub(super) file_name: Option<Cow<'b, str>>,
    pub(super) media_type: Option<&'b str>,
    pub(super) content: &'b [u8],
}

/// The parts of a body, up to the first that is wrong.
pub(super) struct Parts<'b> {
    /// Two dashes and the boundary, behind a line's end.
    mark: Vec<u8>,
    /// Behind the last mark seen.
    rest: &'b [u8],
    count: usize,
    is_over: bool,
}

/// The boundary of a body of this type; `None`: it is no form of parts.
pub(super) fn boundary(content_type: &str) -> Option<Cow<'_, str>> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary")?;
    (1..=MOST_BOUNDARY).contains(&boundary.len()).then_some(boundary)
}

impl<'b> Parts<'b> {
    /// The parts of `body`.
    pub(super) fn new(boundary: &str, body: &'b [u8]) -> Result<Self, String> {
        let mark = [b"\r\n--", boundary.as_bytes()].concat();
        // The first mark has no line in front of it, unless something stands above it.
        let rest = match body.strip_prefix(&mark[2..]) {
            Some(rest) => rest,
            None => {
                let place = find(body, &mark).ok_or("has no boundary in its body")?;
                &body[place + mark.len()..]
            }
        };
        Ok(Self { mark, rest, count: 0, is_over: false })
    }

    fn part(&mut self) -> Result<Option<Part<'b>>, &'static str> {
        if self.rest.starts_with(b"--") {
            return Ok(None);
        }
        if self.count == MOST_PARTS {
            return Err("has more than a hundred parts");
        }
        self.count += 1;
        // White space may stand behind a boundary (RFC 2046 section 5.1.1).
        let padding = self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let after = &self.rest[padding..];
        if !after.starts_with(b"\r\n") {
            return Err("has a broken boundary");
        }
        // The line's end in front of the fields makes the search the same for a part without any.
        let head_end = find(&after[..after.len().min(MOST_HEAD)], b"\r\n\r\n");
        let head_end = head_end.ok_or("has a part whose fields do not end")?;
        let head = str::from_utf8(&after[..head_end])
            .map_err(|_| "has a part whose fields are no text")?;
        let body = &after[head_end + 4..];
        // A part without content ends where its fields do: the line's end is the same.
        let (content, length) = match after[head_end + 2..].strip_prefix(&self.mark[..]) {
            Some(_) => (&body[..0], self.mark.len() - 2),
            None => {
                let end = find(body, &self.mark).ok_or("has a part that does not end")?;
                (&body[..end], end + self.mark.len())
            }
        };
        self.rest = &body[length..];
        let (name, file_name) = disposition(head).ok_or("has a part without a name")?;
        let media_type = field(head, "content-type");
        Ok(Some(Part { name, file_name, media_type, content }))
    }
}

impl<'b> Iterator for Parts<'b> {
    type Item = Result<Part<'b>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let part = self.part().transpose();
        self.is_over = !matches!(part, Some(Ok(_)));
        part
    }
}

/// What Content-Disposition says: the part's name, and the file's.
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
    // A backslash stays where it escapes no quote: names of files may hold one.
    let text = text.replace("\\\"", "\"").replace("%22", "\"");
    Cow::Owned(text.replace("%0D", "\r").replace("%0A", "\n"))
}

/// Where `needle`, which begins with a carriage return, is in `bytes`.
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
        let parts = match Parts::new("x-y", body.as_bytes()) {
            Ok(parts) => parts,
            Err(reason) => return reason,
        };
        let told = parts.map(|part| match part {
            Ok(Part { name, file_name, media_type, content }) => {
                let content = String::from_utf8_lossy(content);
                format!(
                    "{name}|{}|{}|{content}",
                    file_name.unwrap_or("-".into()),
                    media_type.unwrap_or("-")
                )
            }
            Err(reason) => reason.to_owned(),
        });
        told.collect::<Vec<_>>().join("\n")
    }

    const FIELD: &str = "Content-Disposition: form-data; name=\"a\"\r\n\r\n";

    #[test]
    fn fields_and_files_are_told_apart() {
        let body = format!(
            "--x-y\r\n{FIELD}one\r\n--x-y\r\ncontent-disposition: form-data; name=b; filename=\"c d.txt\"\r\n\
             Content-Type: text/plain\r\n\r\ntwo\r\nlines\r\n--x-y--\r\n"
        );
        assert_eq!(read(&body), "a|-|-|one\nb|c d.txt|text/plain|two\r\nlines");
    }

    #[test]
    fn contents_may_look_nearly_like_a_boundary() {
        let body = format!("--x-y\r\n{FIELD}\r\n--x\r\r\n-x-y --x-y\r\n--x-y--");
        assert_eq!(read(&body), "a|-|-|\r\n--x\r\r\n-x-y --x-y");
    }

    #[test]
    fn a_part_may_be_empty_and_what_stands_around_the_parts_is_passed_over() {
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
    fn a_broken_body_says_what_is_broken() {
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
    fn a_boundary_is_found_whichever_way_it_is_written() {
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
    fn a_name_may_hold_what_would_end_it() {
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

    /// Whatever parts there are, they are found again as they were, and nothing that is cut off panics.
    #[test]
    fn what_was_written_is_read() {
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
