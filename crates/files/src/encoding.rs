//! Content negotiation: selects the precompressed variant for a client (RFC 9110 section 12.5.3).

/// The content coding of a precompressed file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstandard,
    /// RFC 1952.
    Gzip,
}

impl Encoding {
    /// All codings, in the server's order of preference between equal weights. The first is usually
    /// the smallest.
    pub(crate) const ALL: [Self; 3] = [Self::Brotli, Self::Zstandard, Self::Gzip];

    /// Returns the extension that is appended to the original's name.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstandard => ".zst",
            Self::Gzip => ".gz",
        }
    }

    /// Returns the name in header fields.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstandard => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// Whether a name refers to this coding: case-insensitive, with an old name for gzip (RFC 9110
    /// section 8.4.1).
    fn has_name(self, name: &[u8]) -> bool {
        let is = |own: &str| own.as_bytes().eq_ignore_ascii_case(name);
        is(self.name()) || (self == Self::Gzip && is("x-gzip"))
    }
}

/// A weight in thousandths. 0 means not acceptable.
type Weight = u16;

/// Selects a coding that is available and that these Accept-Encoding fields accept. `None` selects
/// the original.
///
/// Malformed members are ignored. A client that accepts no coding receives the original: a response
/// is more useful than status 406.
pub(crate) fn negotiate<'f>(
    fields: impl Iterator<Item = &'f [u8]>,
    is_available: impl Fn(Encoding) -> bool,
) -> Option<Encoding> {
    let mut weights = [None; Encoding::ALL.len()];
    let (mut identity, mut wildcard) = (None, None);
    for member in fields.flat_map(|field| field.split(|&byte| byte == b',')) {
        let (name, weight) = match member.iter().position(|&byte| byte == b';') {
            Some(position) => (&member[..position], parse_weight(&member[position + 1..])),
            None => (member, Some(1000)),
        };
        let (name, Some(weight)) = (name.trim_ascii(), weight) else { continue };
        let slot = match Encoding::ALL.iter().position(|encoding| encoding.has_name(name)) {
            Some(position) => &mut weights[position],
            None if name.eq_ignore_ascii_case(b"identity") => &mut identity,
            None if name == b"*" => &mut wildcard,
            None => continue,
        };
        // The first weight of a name counts.
        slot.get_or_insert(weight);
    }
    let mut best: Option<(Encoding, Weight)> = None;
    for (encoding, weight) in Encoding::ALL.into_iter().zip(weights) {
        let weight = weight.or(wildcard).unwrap_or(0);
        if is_available(encoding) && weight > best.map_or(0, |(_, weight)| weight) {
            best = Some((encoding, weight));
        }
    }
    // Without its own weight, the original is less preferred than any named coding.
    best.filter(|(_, weight)| *weight >= identity.unwrap_or(0)).map(|(encoding, _)| encoding)
}

/// Parses the weight among a member's parameters (RFC 9110 section 12.4.2).
fn parse_weight(parameters: &[u8]) -> Option<Weight> {
    let text = str::from_utf8(parameters).ok()?.trim();
    let value = text.strip_prefix("q=").or_else(|| text.strip_prefix("Q="))?;
    let (whole, part) = value.split_once('.').unwrap_or((value, ""));
    if part.len() > 3 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = part.bytes().chain([b'0'; 3]).take(3);
    let thousandths = digits.fold(0, |sum, digit| sum * 10 + Weight::from(digit - b'0'));
    match (whole, thousandths) {
        ("0", thousandths) => Some(thousandths),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn selected(fields: &[&str], is_available: &[Encoding]) -> Option<Encoding> {
        negotiate(fields.iter().map(|field| field.as_bytes()), |encoding| {
            is_available.contains(&encoding)
        })
    }

    const BR: Option<Encoding> = Some(Encoding::Brotli);
    const ZSTD: Option<Encoding> = Some(Encoding::Zstandard);
    const GZIP: Option<Encoding> = Some(Encoding::Gzip);

    #[test]
    fn parses_only_valid_weights() {
        let good = [&b"q=0.5"[..], b"q=0.123", b"Q=1.000", b"q=0."].map(parse_weight);
        assert_eq!(good, [500, 123, 1000, 0].map(Some));
        for wrong in ["q=0.1234", "q=0.5a", "q=0.+", "q=1.001", "q=2", "q=", "0.5"] {
            assert_eq!(parse_weight(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn selects_preferred_available_encoding() {
        for (field, expected) in [
            ("gzip, deflate, br, zstd", BR),
            ("gzip, deflate, zstd", ZSTD),
            ("gzip;q=1.0, br;q=0.9", GZIP),
            ("gzip;q=0.5, br;q=0.50", BR),
            ("X-GZIP", GZIP),
            ("BR ; q=0.001", BR),
            ("*", BR),
            ("*;q=0.1, gzip", GZIP),
            ("br;q=0, *;q=0.5", ZSTD),
            ("identity, gzip;q=0.5", None),
            ("identity;q=0.5, gzip", GZIP),
            ("identity;q=0, gzip;q=0.1", GZIP),
            ("br;q=0", None),
            ("deflate, compress", None),
            ("", None),
            (",, ;, gzip", GZIP),
            ("br;q=2, gzip", GZIP),
            ("br;q=0.1234, gzip", GZIP),
            ("br;level=1, gzip", GZIP),
            ("gzip;q=0, gzip;q=1", None),
        ] {
            assert_eq!(selected(&[field], &Encoding::ALL), expected, "{field:?}");
        }
        assert_eq!(selected(&["gzip;q=0.5", "br"], &Encoding::ALL), BR, "lines are one list");
    }

    #[test]
    fn never_selects_unavailable_encoding() {
        assert_eq!(selected(&["br, gzip"], &[Encoding::Gzip]), GZIP);
        assert_eq!(selected(&["br, zstd"], &[Encoding::Gzip]), None);
        assert_eq!(selected(&[], &Encoding::ALL), None);
    }

    proptest! {
        #[test]
        fn never_selects_refused_or_unnamed_encoding(
            members in prop::collection::vec(("(br|zstd|gzip|identity|\\*|x)", 0_u16..=1000), 0..6),
            noise in "[ -~]{0,20}",
        ) {
            let list: Vec<String> = members
                .iter()
                .map(|(name, weight)| format!("{name};q={}.{:03}", weight / 1000, weight % 1000))
                .collect();
            let weight_of = |encoding: Encoding| {
                let named = |name: &str| members.iter().find(|(own, _)| own == name).map(|(_, w)| *w);
                named(encoding.name()).or_else(|| named("*")).unwrap_or(0)
            };
            let selection = selected(&[&list.join(", ")], &Encoding::ALL);
            match selection {
                Some(encoding) => {
                    prop_assert!(weight_of(encoding) > 0);
                    for other in Encoding::ALL {
                        prop_assert!(weight_of(other) <= weight_of(encoding));
                    }
                }
                None => {
                    let identity = members.iter().find(|(own, _)| own == "identity").map_or(0, |(_, w)| *w);
                    for encoding in Encoding::ALL {
                        prop_assert!(weight_of(encoding) == 0 || weight_of(encoding) < identity);
                    }
                }
            }
            // Any other input terminates as well.
            selected(&[&noise], &Encoding::ALL);
        }
    }
}
