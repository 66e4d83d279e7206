//! Selects the content coding for a client (RFC 9110 section 12.5.3).

use crate::coding::Coding;

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
    available: &[Coding],
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
    for &coding in available {
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

    #[track_caller]
    fn check(field: &str, expected: Option<Coding>) {
        assert_eq!(negotiate([field.as_bytes()], &Coding::ALL), expected, "{field}");
    }

    #[test]
    fn selects_by_weight_and_then_by_own_preference() {
        check("gzip, deflate, br, zstd", Some(Coding::Zstandard));
        check("gzip, deflate, br", Some(Coding::Brotli));
        check("GZIP", Some(Coding::Gzip));
        check("x-gzip;q=0.1", Some(Coding::Gzip));
        check("br;q=0.5, gzip;q=0.6", Some(Coding::Gzip));
        check("br ; q=0.8 , gzip;q=0.8", Some(Coding::Brotli));
        check("*", Some(Coding::Zstandard));
        check("*;q=0.3, gzip;q=0.2", Some(Coding::Zstandard));
        let offered = [Coding::Gzip, Coding::Brotli];
        assert_eq!(negotiate([b"br, gzip, zstd".as_slice()], &offered), Some(Coding::Gzip));
    }

    #[test]
    fn sends_no_coding_that_the_client_refuses() {
        check("", None);
        check("deflate, compress", None);
        check("gzip;q=0", None);
        check("*;q=0", None);
        check("zstd;q=0, br;q=0, *", Some(Coding::Gzip));
        check("identity", None);
        check("identity;q=0.5, gzip;q=0.4", None);
        check("identity;q=0, br", Some(Coding::Brotli));
    }

    #[test]
    fn ignores_malformed_members() {
        check("gzip;q=2, br;q=0.1", Some(Coding::Brotli));
        check("gzip;level=3", None);
        check(",,;q=1,gzip", Some(Coding::Gzip));
        check("br;q=0.1234, gzip", Some(Coding::Gzip));
    }

    #[test]
    fn reads_several_fields_as_one_list() {
        let fields = [b"deflate".as_slice(), b"br;q=0.2", b"gzip"];
        assert_eq!(negotiate(fields, &Coding::ALL), Some(Coding::Gzip));
    }

    proptest! {
        /// A straightforward reading of the rule, for members in the usual form.
        #[test]
        fn follows_weights(
            members in prop::collection::vec(
                (prop::sample::select(vec!["gzip", "br", "zstd", "identity", "*", "deflate"]), 0_u16..=10),
                0..8,
            ),
        ) {
            let field: Vec<String> = members
                .iter()
                .map(|(name, tenths)| match tenths {
                    10 => format!("{name};q=1"),
                    tenths => format!("{name};q=0.{tenths}"),
                })
                .collect();
            let weight = |name: &str| {
                members.iter().find(|(own, _)| *own == name).map(|(_, tenths)| *tenths)
            };
            let of = |coding: Coding| weight(coding.name()).or_else(|| weight("*")).unwrap_or(0);
            let selected = negotiate([field.join(", ").as_bytes()], &Coding::ALL);
            let most = Coding::ALL.map(of).into_iter().max().unwrap();
            match selected {
                Some(coding) => {
                    prop_assert_eq!(of(coding), most);
                    prop_assert!(most > 0 && most >= weight("identity").unwrap_or(0));
                }
                None => prop_assert!(most == 0 || most < weight("identity").unwrap_or(0)),
            }
        }

        #[test]
        fn accepts_any_bytes(field in prop::collection::vec(any::<u8>(), 0..60)) {
            let selected = negotiate([&*field], &Coding::ALL);
            let names_one = field.contains(&b'*')
                || field.to_ascii_lowercase().windows(2).any(|part| part == b"br" || part == b"gz" || part == b"zs");
            prop_assert!(selected.is_none() || names_one);
        }
    }
}
