//! Decides which packed form of a file a peer gets, if any (RFC 9110 section 12.5.3).

/// A content coding of a file that lies packed beside the file itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Coding {
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstandard,
    /// RFC 1952.
    Gzip,
}

impl Coding {
    /// All there are; of those a peer likes alike the first is sent, which is the shortest as a rule.
    pub(crate) const ALL: [Self; 3] = [Self::Brotli, Self::Zstandard, Self::Gzip];

    /// What stands behind the file's own name.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstandard => ".zst",
            Self::Gzip => ".gz",
        }
    }

    /// Its name in fields.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstandard => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// RFC 9110 section 8.4.1: names in any case, and an old one for gzip.
    fn is_named(self, name: &[u8]) -> bool {
        let is = |own: &str| own.as_bytes().eq_ignore_ascii_case(name);
        is(self.name()) || (self == Self::Gzip && is("x-gzip"))
    }
}

/// How much a peer likes something, in thousandths; 0 is not at all.
type Weight = u16;

/// The coding to send, of those that are `there`, to a peer that sent these Accept-Encoding fields.
/// `None`: the file as it is.
///
/// What cannot be read is passed over. The file as it is goes to whoever takes nothing at all: an answer is worth more
/// than a 406.
pub(crate) fn choose<'f>(
    fields: impl Iterator<Item = &'f [u8]>,
    there: impl Fn(Coding) -> bool,
) -> Option<Coding> {
    let mut weights = [None; Coding::ALL.len()];
    let (mut plain, mut others) = (None, None);
    for member in fields.flat_map(|field| field.split(|&byte| byte == b',')) {
        let (name, weight) = match member.iter().position(|&byte| byte == b';') {
            Some(place) => (&member[..place], weight(&member[place + 1..])),
            None => (member, Some(1000)),
        };
        let (name, Some(weight)) = (name.trim_ascii(), weight) else { continue };
        let place = match Coding::ALL.iter().position(|coding| coding.is_named(name)) {
            Some(place) => &mut weights[place],
            None if name.eq_ignore_ascii_case(b"identity") => &mut plain,
            None if name == b"*" => &mut others,
            None => continue,
        };
        // The first word counts.
        place.get_or_insert(weight);
    }
    let mut best: Option<(Coding, Weight)> = None;
    for (coding, weight) in Coding::ALL.into_iter().zip(weights) {
        let weight = weight.or(others).unwrap_or(0);
        if there(coding) && weight > best.map_or(0, |(_, weight)| weight) {
            best = Some((coding, weight));
        }
    }
    // Who says nothing of it likes the file as it is less than any coding named.
    best.filter(|(_, weight)| *weight >= plain.unwrap_or(0)).map(|(coding, _)| coding)
}

/// The weight among a member's parameters (RFC 9110 section 12.4.2).
fn weight(parameters: &[u8]) -> Option<Weight> {
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

    fn chosen(fields: &[&str], there: &[Coding]) -> Option<Coding> {
        choose(fields.iter().map(|field| field.as_bytes()), |coding| there.contains(&coding))
    }

    const BR: Option<Coding> = Some(Coding::Brotli);
    const ZSTD: Option<Coding> = Some(Coding::Zstandard);
    const GZIP: Option<Coding> = Some(Coding::Gzip);

    #[test]
    fn a_weight_has_at_most_three_digits_after_its_point_and_nothing_else() {
        let good = [&b"q=0.5"[..], b"q=0.123", b"Q=1.000", b"q=0."].map(weight);
        assert_eq!(good, [500, 123, 1000, 0].map(Some));
        for wrong in ["q=0.1234", "q=0.5a", "q=0.+", "q=1.001", "q=2", "q=", "0.5"] {
            assert_eq!(weight(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_peer_gets_what_it_likes_best_of_what_is_there() {
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
            assert_eq!(chosen(&[field], &Coding::ALL), expected, "{field:?}");
        }
        assert_eq!(chosen(&["gzip;q=0.5", "br"], &Coding::ALL), BR, "lines are one list");
    }

    #[test]
    fn what_is_not_there_is_not_sent() {
        assert_eq!(chosen(&["br, gzip"], &[Coding::Gzip]), GZIP);
        assert_eq!(chosen(&["br, zstd"], &[Coding::Gzip]), None);
        assert_eq!(chosen(&[], &Coding::ALL), None);
    }

    proptest! {
        #[test]
        fn whatever_is_asked_nothing_is_sent_that_was_refused_or_not_named(
            members in prop::collection::vec(("(br|zstd|gzip|identity|\\*|x)", 0_u16..=1000), 0..6),
            noise in "[ -~]{0,20}",
        ) {
            let list: Vec<String> = members
                .iter()
                .map(|(name, weight)| format!("{name};q={}.{:03}", weight / 1000, weight % 1000))
                .collect();
            let weight_of = |coding: Coding| {
                let named = |name: &str| members.iter().find(|(own, _)| own == name).map(|(_, w)| *w);
                named(coding.name()).or_else(|| named("*")).unwrap_or(0)
            };
            let sent = chosen(&[&list.join(", ")], &Coding::ALL);
            match sent {
                Some(coding) => {
                    prop_assert!(weight_of(coding) > 0);
                    for other in Coding::ALL {
                        prop_assert!(weight_of(other) <= weight_of(coding));
                    }
                }
                None => {
                    let plain = members.iter().find(|(own, _)| own == "identity").map_or(0, |(_, w)| *w);
                    for coding in Coding::ALL {
                        prop_assert!(weight_of(coding) == 0 || weight_of(coding) < plain);
                    }
                }
            }
            // Whatever else stands there, reading it ends.
            chosen(&[&noise], &Coding::ALL);
        }
    }
}
