//! Parses the Range field (RFC 9110 section 14).

/// The maximum number of ranges in a request. With more, the client receives the whole file.
const MAX_RANGES: usize = 16;

/// A range of bytes; both ends are included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// The meaning of a Range field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ranges {
    /// The field is malformed or requests too much, and is ignored.
    Ignored,
    /// No range overlaps the file.
    NotSatisfiable,
    One(Part),
    Several(Vec<Part>),
}

impl Part {
    pub(crate) const fn len(self) -> u64 {
        self.last - self.first + 1
    }
}

/// Parses the field of a request for a file of this length.
///
/// Ranges that are longer in total than the file are a known attack and are ignored (RFC 9110
/// section 17.15).
pub(crate) fn parse(field: &str, length: u64) -> Ranges {
    let Some((unit, list)) = field.split_once('=') else {
        return Ranges::Ignored;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Ranges::Ignored;
    }
    let mut parts = Vec::new();
    let mut count = 0;
    for range in list.split(',').map(|range| range.trim_matches([' ', '\t'])) {
        if range.is_empty() {
            continue;
        }
        count += 1;
        match parse_one(range, length) {
            Ok(part) if count <= MAX_RANGES => parts.extend(part),
            _ => return Ranges::Ignored,
        }
    }
    let sum: u64 = parts.iter().fold(0, |sum, part| part.len().saturating_add(sum));
    match parts[..] {
        _ if count == 0 || sum > length => Ranges::Ignored,
        [] => Ranges::NotSatisfiable,
        [part] => Ranges::One(part),
        _ => Ranges::Several(parts),
    }
}

/// The text is not a valid range.
struct InvalidRange;

/// Parses one range and limits it to the file.
fn parse_one(range: &str, length: u64) -> Result<Option<Part>, InvalidRange> {
    let (first, last) = range.split_once('-').ok_or(InvalidRange)?;
    if first.is_empty() {
        let suffix = parse_number(last)?.min(length);
        return Ok((suffix > 0).then(|| Part { first: length - suffix, last: length - 1 }));
    }
    let first = parse_number(first)?;
    let last = if last.is_empty() { u64::MAX } else { parse_number(last)? };
    if last < first {
        return Err(InvalidRange);
    }
    Ok((first < length).then(|| Part { first, last: last.min(length - 1) }))
}

/// Parses decimal digits. A number that is too large becomes `u64::MAX`.
fn parse_number(digits: &str) -> Result<u64, InvalidRange> {
    let are_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if are_digits { Ok(digits.parse().unwrap_or(u64::MAX)) } else { Err(InvalidRange) }
}

#[cfg(test)]
mod tests {
    use super::{Part, Ranges, parse};

    fn parsed(field: &str, length: u64) -> String {
        let part = |part: &Part| format!("{}-{}", part.first, part.last);
        match parse(field, length) {
            Ranges::Ignored => "ignored".to_owned(),
            Ranges::NotSatisfiable => "not satisfiable".to_owned(),
            Ranges::One(one) => part(&one),
            Ranges::Several(parts) => parts.iter().map(part).collect::<Vec<_>>().join(" "),
        }
    }

    #[test]
    fn truncates_ranges_at_end_of_file() {
        for (field, expected) in [
            ("bytes=0-0", "0-0"),
            ("bytes=0-", "0-9"),
            ("bytes=5-99999999999999999999999", "5-9"),
            ("bytes=-3", "7-9"),
            ("bytes=-30", "0-9"),
            ("Bytes = 1-2", "1-2"),
            ("bytes=9-9", "9-9"),
        ] {
            assert_eq!(parsed(field, 10), expected, "{field}");
        }
    }

    #[test]
    fn rejects_ranges_outside_file() {
        for field in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999-"] {
            assert_eq!(parsed(field, 10), "not satisfiable", "{field}");
        }
        assert_eq!(parsed("bytes=0-", 0), "not satisfiable");
        assert_eq!(parsed("bytes=-1", 0), "not satisfiable");
    }

    #[test]
    fn ignores_malformed_ranges() {
        for field in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=a-b",
            "bytes=2-1",
            "bytes=1",
            "bytes=--1",
            "bytes=+1-2",
            "items=0-1",
            "bytes=0-1,x",
            "bytes=0 -1",
        ] {
            assert_eq!(parsed(field, 10), "ignored", "{field}");
        }
    }

    #[test]
    fn keeps_order_of_several_ranges() {
        assert_eq!(parsed("bytes=7-8, 0-1", 10), "7-8 0-1");
        assert_eq!(parsed("bytes=0-1,20-30,-1", 10), "0-1 9-9");
        assert_eq!(parsed("bytes=20-,1-1", 10), "1-1");
    }

    #[test]
    fn ignores_overlapping_or_excessive_ranges() {
        assert_eq!(parsed("bytes=0-,0-", 10), "ignored");
        assert_eq!(parsed(&format!("bytes={}", "0-0,".repeat(17)), 100), "ignored");
        assert_eq!(parsed(&format!("bytes={}", "0-0,".repeat(16)), 100).split(' ').count(), 16);
    }

    /// Compares every small range of every small file with a naive model that filters the bytes.
    #[test]
    fn matches_naive_range_model() {
        for length in 0..6_u64 {
            for first in 0..8_u64 {
                for last in 0..8_u64 {
                    let named: Vec<u64> = (first..=last).filter(|byte| *byte < length).collect();
                    let expected = match (named.first(), named.last()) {
                        _ if last < first => "ignored".to_owned(),
                        (Some(first), Some(last)) => format!("{first}-{last}"),
                        _ => "not satisfiable".to_owned(),
                    };
                    assert_eq!(parsed(&format!("bytes={first}-{last}"), length), expected);
                }
                let tail: Vec<u64> = (0..length).rev().take(first as usize).collect();
                let expected = match (tail.last(), tail.first()) {
                    (Some(first), Some(last)) => format!("{first}-{last}"),
                    _ => "not satisfiable".to_owned(),
                };
                assert_eq!(parsed(&format!("bytes=-{first}"), length), expected);
            }
        }
    }
}
