//! Content codings, and their selection for a client (RFC 9110 section 12.5.3).

/// A content coding (RFC 9110 section 8.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Coding {
    /// RFC 8878.
    Zstandard,
    /// RFC 7932.
    Brotli,
    /// RFC 1952.
    Gzip,
}

impl Coding {
    /// All codings. The first one compresses best in a given time.
    pub const ALL: [Self; 3] = [Self::Zstandard, Self::Brotli, Self::Gzip];

    /// Returns the name in header fields.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstandard => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// Returns the coding with this name: case-insensitive, with an old name for gzip (RFC 9110
    /// section 8.4.1).
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let is = |own: &str| own.as_bytes().eq_ignore_ascii_case(name);
        let found = Self::ALL.into_iter().find(|coding| is(coding.name()));
        found.or_else(|| is("x-gzip").then_some(Self::Gzip))
    }

    /// The position in [`ALL`](Self::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A weight in thousandths. 0 means not acceptable.
type Weight = u16;

/// Selects the coding that these Accept-Encoding fields prefer. `available` lists the codings that the
/// server offers, in its own order of preference, which decides between equal weights. `None` selects
/// the content without coding.
///
/// Malformed members are ignored. A client that accepts no coding at all receives the content without
/// one: a response is more useful than status 406.
pub fn negotiate<'f>(
    fields: impl IntoIterator<Item = &'f [u8]>,
    available: impl IntoIterator<Item = Coding>,
) -> Option<Coding> {
    let mut weights = [None; Coding::ALL.len()];
    let (mut identity, mut wildcard) = (None, None);
    for member in fields.into_iter().flat_map(|field| field.split(|&byte| byte == b',')) {
        let (name, weight) = match member.iter().position(|&byte| byte == b';') {
            Some(position) => (&member[..position], parse_weight(&member[position + 1..])),
            None => (member, Some(1000)),
        };
        let (name, Some(weight)) = (name.trim_ascii(), weight) else { continue };
        let slot = match Coding::from_name(name) {
            Some(coding) => &mut weights[coding.index()],
            None if name.eq_ignore_ascii_case(b"identity") => &mut identity,
            None if name == b"*" => &mut wildcard,
            None => continue,
        };
        // The first weight of a name counts.
        slot.get_or_insert(weight);
    }
    let mut best: Option<(Coding, Weight)> = None;
    for coding in available {
        let weight = weights[coding.index()].or(wildcard).unwrap_or(0);
        if weight > best.map_or(0, |(_, weight)| weight) {
            best = Some((coding, weight));
        }
    }
    // Without its own weight, the content without coding is less preferred than any named coding.
    best.filter(|(_, weight)| *weight >= identity.unwrap_or(0)).map(|(coding, _)| coding)
}

/// Parses the weight among a member's parameters (RFC 9110 section 12.4.2).
fn parse_weight(parameters: &[u8]) -> Option<Weight> {
    let text = core::str::from_utf8(parameters).ok()?.trim();
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
    use alloc::format;
    use alloc::string::String;
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// The order by size, which files have.
    const BY_SIZE: [Coding; 3] = [Coding::Brotli, Coding::Zstandard, Coding::Gzip];
    const BR: Option<Coding> = Some(Coding::Brotli);
    const ZSTD: Option<Coding> = Some(Coding::Zstandard);
    const GZIP: Option<Coding> = Some(Coding::Gzip);

    #[track_caller]
    fn check(field: &str, expected: Option<Coding>) {
        assert_eq!(negotiate([field.as_bytes()], Coding::ALL), expected, "{field}");
    }

    #[test]
    fn finds_codings_by_name() {
        for coding in Coding::ALL {
            assert_eq!(Coding::from_name(coding.name().as_bytes()), Some(coding));
            assert_eq!(Coding::from_name(coding.name().to_uppercase().as_bytes()), Some(coding));
            assert_eq!(Coding::ALL[coding.index()], coding);
        }
        assert_eq!(Coding::from_name(b"x-gzip"), Some(Coding::Gzip));
        assert_eq!(Coding::from_name(b"deflate"), None);
    }

    #[test]
    fn parses_only_valid_weights() {
        let good = [&b"q=0.5"[..], b"q=0.123", b"Q=1.000", b"q=0."].map(parse_weight);
        assert_eq!(good, [500, 123, 1000, 0].map(Some));
        for wrong in ["q=0.1234", "q=0.5a", "q=0.+", "q=1.001", "q=2", "q=", "0.5"] {
            assert_eq!(parse_weight(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn selects_by_weight_and_then_by_own_preference() {
        check("gzip, deflate, br, zstd", ZSTD);
        check("gzip, deflate, br", BR);
        check("GZIP", GZIP);
        check("x-gzip;q=0.1", GZIP);
        check("br;q=0.5, gzip;q=0.6", GZIP);
        check("br ; q=0.8 , gzip;q=0.8", BR);
        check("BR ; q=0.001", BR);
        check("gzip;q=0.5, br;q=0.50", BR);
        check("*", ZSTD);
        check("*;q=0.3, gzip;q=0.2", ZSTD);
        check("*;q=0.1, gzip", GZIP);
        check("br;q=0, zstd;q=0, *;q=0.5", GZIP);
        assert_eq!(negotiate([b"gzip, deflate, br, zstd".as_slice()], BY_SIZE), BR);
        assert_eq!(negotiate([b"br;q=0, *;q=0.5".as_slice()], BY_SIZE), ZSTD);
    }

    #[test]
    fn selects_no_coding_that_is_not_available() {
        let offered = [Coding::Gzip, Coding::Brotli];
        assert_eq!(negotiate([b"br, gzip, zstd".as_slice()], offered), GZIP);
        assert_eq!(negotiate([b"br, zstd".as_slice()], [Coding::Gzip]), None);
        assert_eq!(negotiate([], Coding::ALL), None);
    }

    #[test]
    fn selects_no_coding_that_the_client_refuses() {
        check("", None);
        check("deflate, compress", None);
        check("gzip;q=0", None);
        check("*;q=0", None);
        check("zstd;q=0, br;q=0, *", GZIP);
        check("identity", None);
        check("identity, gzip;q=0.5", None);
        check("identity;q=0.5, gzip;q=0.4", None);
        check("identity;q=0.5, gzip", GZIP);
        check("identity;q=0, br", BR);
        check("gzip;q=0, gzip;q=1", None);
    }

    #[test]
    fn ignores_malformed_members() {
        check("gzip;q=2, br;q=0.1", BR);
        check("gzip;level=3", None);
        check(",,;q=1,gzip", GZIP);
        check(",, ;, gzip", GZIP);
        check("br;q=0.1234, gzip", GZIP);
    }

    #[test]
    fn reads_several_fields_as_one_list() {
        let fields = [b"deflate".as_slice(), b"br;q=0.2", b"gzip"];
        assert_eq!(negotiate(fields, Coding::ALL), GZIP);
    }

    proptest! {
        /// A straightforward reading of the rule, for members in the usual form.
        #[test]
        fn follows_weights(
            members in prop::collection::vec(
                (
                    prop::sample::select(vec!["gzip", "br", "zstd", "identity", "*", "deflate"]),
                    0_u16..=1000,
                ),
                0..8,
            ),
            by_size: bool,
        ) {
            let list: Vec<String> = members
                .iter()
                .map(|(name, weight)| format!("{name};q={}.{:03}", weight / 1000, weight % 1000))
                .collect();
            let weight = |name: &str| {
                members.iter().find(|(own, _)| *own == name).map(|(_, weight)| *weight)
            };
            let of = |coding: Coding| weight(coding.name()).or_else(|| weight("*")).unwrap_or(0);
            let order = if by_size { BY_SIZE } else { Coding::ALL };
            let selected = negotiate([list.join(", ").as_bytes()], order);
            let most = order.map(of).into_iter().max().unwrap();
            let first = order.into_iter().find(|coding| of(*coding) == most);
            let identity = weight("identity").unwrap_or(0);
            prop_assert_eq!(selected, first.filter(|_| most > 0 && most >= identity));
        }

        #[test]
        fn accepts_any_bytes(field in prop::collection::vec(any::<u8>(), 0..60)) {
            let selected = negotiate([&*field], Coding::ALL);
            let lower = field.to_ascii_lowercase();
            let is_part = |part: &[u8]| part == b"br" || part == b"gz" || part == b"zs";
            let names_one = field.contains(&b'*') || lower.windows(2).any(is_part);
            prop_assert!(selected.is_none() || names_one);
        }
    }
}
