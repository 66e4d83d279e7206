//! Decides what the conditions of a request make of a file: all of it, parts of it, or a word that it is known.
//!
//! The order is that of RFC 9110 section 13.2.2. Nothing here looks at a disk or a clock.

use bine_http::{Date, Head, Known, Method, Status};

use crate::ranges::{self, Part, Ranges};

/// By what a peer can know a file again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validators<'f> {
    /// In quotes, behind `W/` if it is weak (RFC 9110 section 8.8.3).
    pub(crate) tag: &'f str,
    /// Seconds since 1970.
    pub(crate) modified: u64,
    /// Bytes.
    pub(crate) length: u64,
}

/// What a request gets of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Evaluation {
    Whole,
    /// 206 with one part.
    Part(Part),
    /// 206 with several.
    Parts(Vec<Part>),
    /// 304.
    NotModified,
    /// 412.
    Failed,
    /// 416.
    NotSatisfiable,
}

/// The verdict over a GET or HEAD.
#[inline]
pub(crate) fn evaluate(head: &Head<'_>, validators: &Validators<'_>) -> Evaluation {
    const CONDITIONS: [Known; 5] = [
        Known::IfNoneMatch,
        Known::IfModifiedSince,
        Known::Range,
        Known::IfMatch,
        Known::IfUnmodifiedSince,
    ];
    // Most requests have none of them.
    if CONDITIONS.iter().all(|condition| !head.has(*condition)) {
        return Evaluation::Whole;
    }
    evaluate_conditions(head, validators)
}

/// What a GET or HEAD comes to of something that is known by its tag alone and only sent whole: 304 if the peer has it,
/// 412 if it wants another, `None` if it is to be sent.
#[inline]
pub fn evaluate_etag(head: &Head<'_>, tag: &str) -> Option<Status> {
    if head.has(Known::IfMatch) && !any_tag(head, "if-match", |wanted| is_strong_match(wanted, tag))
    {
        return Some(Status::PRECONDITION_FAILED);
    }
    let is_known = head.has(Known::IfNoneMatch)
        && any_tag(head, "if-none-match", |known| opaque(known) == opaque(tag));
    is_known.then_some(Status::NOT_MODIFIED)
}

fn evaluate_conditions(head: &Head<'_>, validators: &Validators<'_>) -> Evaluation {
    if head.has(Known::IfMatch) {
        if !any_tag(head, "if-match", |tag| is_strong_match(tag, validators.tag)) {
            return Evaluation::Failed;
        }
    } else if date(head, "if-unmodified-since").is_some_and(|date| validators.modified > date) {
        return Evaluation::Failed;
    }
    if head.has(Known::IfNoneMatch) {
        if any_tag(head, "if-none-match", |tag| opaque(tag) == opaque(validators.tag)) {
            return Evaluation::NotModified;
        }
    } else if date(head, "if-modified-since").is_some_and(|date| validators.modified <= date) {
        return Evaluation::NotModified;
    }
    // Only GET has parts (RFC 9110 section 14.2).
    if head.method() != Method::Get
        || !head.has(Known::Range)
        || !is_range_applicable(head, validators)
    {
        return Evaluation::Whole;
    }
    match ranges::parse(head.field_text("range").unwrap_or_default(), validators.length) {
        Ranges::Ignored => Evaluation::Whole,
        Ranges::NotSatisfiable => Evaluation::NotSatisfiable,
        Ranges::One(part) => Evaluation::Part(part),
        Ranges::Several(parts) => Evaluation::Parts(parts),
    }
}

/// Whether what the peer has a part of is still this file (RFC 9110 section 13.1.5).
fn is_range_applicable(head: &Head<'_>, validators: &Validators<'_>) -> bool {
    if !head.has(Known::IfRange) {
        return true;
    }
    let text = head.field_text("if-range").unwrap_or_default();
    match Date::read(text) {
        Some(date) => date == validators.modified,
        None => is_strong_match(text, validators.tag),
    }
}

/// Whether some tag of a list is the one looked for. A star stands for any.
fn any_tag(head: &Head<'_>, name: &str, mut predicate: impl FnMut(&str) -> bool) -> bool {
    let fields = head.fields().filter(|(field, _)| field.eq_ignore_ascii_case(name));
    fields
        .filter_map(|(_, value)| str::from_utf8(value).ok())
        .any(|list| list.trim() == "*" || tags(list).any(&mut predicate))
}

/// The tags of a list, as far as it is well formed. A comma may stand inside a tag.
fn tags(mut list: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        list = list.trim_start_matches([' ', '\t', ',']);
        let quote = if list.starts_with("W/") { 2 } else { 0 };
        let inner = list[quote..].strip_prefix('"')?;
        let end = quote + 1 + inner.find('"')? + 1;
        let (tag, rest) = list.split_at(end);
        list = rest;
        Some(tag)
    })
}

fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// A weak tag is never strongly the same as another (RFC 9110 section 8.8.3.2).
fn is_strong_match(tag: &str, other: &str) -> bool {
    tag == other && !tag.starts_with("W/")
}

/// A condition whose date cannot be read is none (RFC 9110 sections 13.1.3 and 13.1.4).
fn date(head: &Head<'_>, name: &str) -> Option<u64> {
    Date::read(head.field_text(name)?)
}

#[cfg(test)]
mod tests {
    use bine_http::{Event, Limits, Machine};

    use super::{Validators, evaluate};

    const SUNDAY: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const MONDAY: &str = "Mon, 07 Nov 1994 08:49:37 GMT";

    /// The verdict over a file of ten bytes that was written on Sunday.
    fn evaluated(method: &str, tag: &str, fields: &[(&str, &str)]) -> String {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let fields = fields.concat();
        let bytes = format!("{method} / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let mut machine = Machine::new();
        let Event::Head(head) = machine.receive(bytes.as_bytes(), &Limits::default()).event else {
            panic!("refused: {bytes}");
        };
        let validators = Validators { tag, modified: 784_111_777, length: 10 };
        format!("{:?}", evaluate(&head, &validators))
    }

    #[track_caller]
    fn check(fields: &[(&str, &str)], expected: &str) {
        assert_eq!(evaluated("GET", "\"a\"", fields), expected, "{fields:?}");
    }

    #[test]
    fn sends_whole_file_without_conditions() {
        check(&[], "Whole");
        check(&[("If-Range", "\"b\"")], "Whole");
    }

    #[test]
    fn sends_not_modified_for_current_validators() {
        check(&[("If-None-Match", "\"a\"")], "NotModified");
        check(&[("If-None-Match", "\"x,\", W/\"a\"")], "NotModified");
        check(&[("If-None-Match", "\"b\""), ("If-None-Match", "\"a\"")], "NotModified");
        check(&[("If-None-Match", "*")], "NotModified");
        check(&[("If-None-Match", "\"b\"")], "Whole");
        check(&[("If-None-Match", "a")], "Whole");
        check(&[("If-Modified-Since", SUNDAY)], "NotModified");
        check(&[("If-Modified-Since", MONDAY)], "NotModified");
        check(&[("If-Modified-Since", "Sat, 05 Nov 1994 08:49:37 GMT")], "Whole");
        check(&[("If-Modified-Since", "yesterday")], "Whole");
    }

    #[test]
    fn prefers_etags_over_dates() {
        check(&[("If-None-Match", "\"b\""), ("If-Modified-Since", MONDAY)], "Whole");
        check(
            &[("If-Match", "\"a\""), ("If-Unmodified-Since", "Sat, 05 Nov 1994 08:49:37 GMT")],
            "Whole",
        );
    }

    #[test]
    fn fails_unmet_preconditions() {
        check(&[("If-Match", "\"b\"")], "Failed");
        check(&[("If-Match", "W/\"a\"")], "Failed");
        check(&[("If-Match", "\"b\", \"a\"")], "Whole");
        check(&[("If-Match", "*")], "Whole");
        check(&[("If-Match", "\"b\""), ("If-None-Match", "\"a\"")], "Failed");
        check(&[("If-Unmodified-Since", "Sat, 05 Nov 1994 08:49:37 GMT")], "Failed");
        check(&[("If-Unmodified-Since", SUNDAY)], "Whole");
        assert_eq!(evaluated("GET", "W/\"a\"", &[("If-Match", "W/\"a\"")]), "Failed");
    }

    #[test]
    fn sends_range_only_of_unchanged_file() {
        let part = "Part(Part { first: 2, last: 4 })";
        check(&[("Range", "bytes=2-4")], part);
        check(&[("Range", "bytes=2-4"), ("If-Range", "\"a\"")], part);
        check(&[("Range", "bytes=2-4"), ("If-Range", SUNDAY)], part);
        check(&[("Range", "bytes=2-4"), ("If-Range", "\"b\"")], "Whole");
        check(&[("Range", "bytes=2-4"), ("If-Range", MONDAY)], "Whole");
        check(&[("Range", "bytes=2-4"), ("If-None-Match", "\"a\"")], "NotModified");
        check(&[("Range", "bytes=20-")], "NotSatisfiable");
        assert_eq!(evaluated("HEAD", "\"a\"", &[("Range", "bytes=2-4")]), "Whole");
        let weak = evaluated("GET", "W/\"a\"", &[("Range", "bytes=2-4"), ("If-Range", "W/\"a\"")]);
        assert_eq!(weak, "Whole");
    }
}
