//! Evaluates the conditions and ranges of a request.
//!
//! The order is that of RFC 9110 section 13.2.2. The module accesses no disk and no clock.

use bine_http::{Date, Head, KnownField, Method, Status};

use crate::ranges::{self, Part, Ranges};

/// The validators of a file, by which a client recognizes the content that it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validators<'f> {
    /// The entity tag: in quotes, with the prefix `W/` if it is weak (RFC 9110 section 8.8.3).
    pub(crate) tag: &'f str,
    /// The time of the last modification, in seconds since 1970.
    pub(crate) modified: u64,
    /// The length in bytes.
    pub(crate) length: u64,
}

/// The result of the conditions of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Evaluation {
    Whole,
    /// Status 206 with one part.
    Part(Part),
    /// Status 206 with several parts.
    Parts(Vec<Part>),
    /// Status 304.
    NotModified,
    /// Status 412.
    Failed,
    /// Status 416.
    NotSatisfiable,
}

/// Evaluates the conditions of a GET or HEAD request.
#[inline]
pub(crate) fn evaluate(head: &Head<'_>, validators: &Validators<'_>) -> Evaluation {
    const CONDITIONS: [KnownField; 5] = [
        KnownField::IfNoneMatch,
        KnownField::IfModifiedSince,
        KnownField::Range,
        KnownField::IfMatch,
        KnownField::IfUnmodifiedSince,
    ];
    // Fast path: most requests have no conditions.
    if CONDITIONS.iter().all(|condition| !head.has(*condition)) {
        return Evaluation::Whole;
    }
    evaluate_conditions(head, validators)
}

/// Evaluates the conditions of a GET or HEAD request for content that has only an entity tag and no
/// ranges: 304 if the client has the content, 412 if it requires other content, `None` if the
/// content is to be sent.
#[inline]
pub fn evaluate_etag(head: &Head<'_>, tag: &str) -> Option<Status> {
    if head.has(KnownField::IfMatch)
        && !any_tag(head, "if-match", |wanted| is_strong_match(wanted, tag))
    {
        return Some(Status::PRECONDITION_FAILED);
    }
    let is_known = head.has(KnownField::IfNoneMatch)
        && any_tag(head, "if-none-match", |known| opaque(known) == opaque(tag));
    is_known.then_some(Status::NOT_MODIFIED)
}

fn evaluate_conditions(head: &Head<'_>, validators: &Validators<'_>) -> Evaluation {
    if head.has(KnownField::IfMatch) {
        if !any_tag(head, "if-match", |tag| is_strong_match(tag, validators.tag)) {
            return Evaluation::Failed;
        }
    } else if date(head, "if-unmodified-since").is_some_and(|date| validators.modified > date) {
        return Evaluation::Failed;
    }
    if head.has(KnownField::IfNoneMatch) {
        if any_tag(head, "if-none-match", |tag| opaque(tag) == opaque(validators.tag)) {
            return Evaluation::NotModified;
        }
    } else if date(head, "if-modified-since").is_some_and(|date| validators.modified <= date) {
        return Evaluation::NotModified;
    }
    // Ranges are defined for GET only (RFC 9110 section 14.2).
    if head.method() != Method::Get
        || !head.has(KnownField::Range)
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

/// Whether the client's partial content is from the current file (RFC 9110 section 13.1.5).
fn is_range_applicable(head: &Head<'_>, validators: &Validators<'_>) -> bool {
    if !head.has(KnownField::IfRange) {
        return true;
    }
    let text = head.field_text("if-range").unwrap_or_default();
    match Date::parse(text) {
        Some(date) => date == validators.modified,
        None => is_strong_match(text, validators.tag),
    }
}

/// Whether any tag of a list satisfies the predicate. A star matches any tag.
fn any_tag(head: &Head<'_>, name: &str, mut predicate: impl FnMut(&str) -> bool) -> bool {
    let fields = head.fields().filter(|(field, _)| field.eq_ignore_ascii_case(name));
    fields
        .filter_map(|(_, value)| str::from_utf8(value).ok())
        .any(|list| list.trim() == "*" || tags(list).any(&mut predicate))
}

/// Returns the tags of a list up to the first malformed one. A tag may contain a comma.
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

/// Strong comparison: weak tags never match (RFC 9110 section 8.8.3.2).
fn is_strong_match(tag: &str, other: &str) -> bool {
    tag == other && !tag.starts_with("W/")
}

/// Returns the date of a condition. A condition with an invalid date is ignored (RFC 9110 sections
/// 13.1.3 and 13.1.4).
fn date(head: &Head<'_>, name: &str) -> Option<u64> {
    Date::parse(head.field_text(name)?)
}

#[cfg(test)]
mod tests {
    use bine_http::{Event, Head, Limits, RequestParser, Status};

    use super::{Validators, evaluate, evaluate_etag};

    const SUNDAY: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const MONDAY: &str = "Mon, 07 Nov 1994 08:49:37 GMT";

    /// Evaluates a request for a file of ten bytes that was modified on Sunday.
    fn evaluated(method: &str, tag: &str, fields: &[(&str, &str)]) -> String {
        let validators = Validators { tag, modified: 784_111_777, length: 10 };
        with_head(method, fields, |head| format!("{:?}", evaluate(head, &validators)))
    }

    fn with_head<T>(
        method: &str,
        fields: &[(&str, &str)],
        evaluate: impl FnOnce(&Head<'_>) -> T,
    ) -> T {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let fields = fields.concat();
        let bytes = format!("{method} / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let mut machine = RequestParser::new();
        let Event::Head(head) = machine.receive(bytes.as_bytes(), &Limits::default()).event else {
            panic!("refused: {bytes}");
        };
        evaluate(&head)
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
    fn evaluates_all_conditions_of_one_request() {
        let fields = |wanted| {
            [
                ("If-Match", wanted),
                ("If-None-Match", "\"a\""),
                ("If-Modified-Since", MONDAY),
                ("If-Unmodified-Since", MONDAY),
                ("Range", "bytes=2-4"),
            ]
        };
        check(&fields("\"a\""), "NotModified");
        check(&fields("\"b\""), "Failed");
    }

    #[test]
    fn evaluates_etags_of_content_without_date() {
        for (fields, expected) in [
            (&[][..], None),
            (&[("If-None-Match", "\"b\"")], None),
            (&[("If-None-Match", "\"b\", W/\"a\"")], Some(Status::NOT_MODIFIED)),
            (&[("If-Match", "\"a\"")], None),
            (&[("If-Match", "\"b\"")], Some(Status::PRECONDITION_FAILED)),
            (&[("If-Match", "W/\"a\"")], Some(Status::PRECONDITION_FAILED)),
            (&[("If-Match", "\"a\""), ("If-None-Match", "\"a\"")], Some(Status::NOT_MODIFIED)),
        ] {
            let status = with_head("GET", fields, |head| evaluate_etag(head, "\"a\""));
            assert_eq!(status, expected, "{fields:?}");
        }
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
