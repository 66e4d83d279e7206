//! The field names that the parser recognizes.

/// Defines each known field once: its variant and its lower-case name, grouped by length for the
/// lookup.
macro_rules! known_fields {
    ($($length:literal: $($variant:ident = $name:literal),+;)+) => {
        /// A field that the parser recognizes. [`Head::has`](crate::Head::has) reports its
        /// presence.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum KnownField {
            $($(
                #[doc = concat!("`", $name, "`.")]
                $variant,
            )+)+
        }

        impl KnownField {
            /// Returns the known field with this name. The comparison ignores case. The name must
            /// consist of token bytes.
            #[inline]
            pub(crate) fn from_name(name: &[u8]) -> Option<Self> {
                match name.len() {
                    $($length => {
                        let name: &[u8; $length] = name.try_into().ok()?;
                        $(
                            if eq_ignore_case(name, lower_case_name::<$length>($name)) {
                                return Some(Self::$variant);
                            }
                        )+
                        None
                    })+
                    _ => None,
                }
            }

            #[cfg(test)]
            const ALL: &[(Self, &str)] = &[$($((Self::$variant, $name),)+)+];
        }
    };
}

known_fields! {
    4: Host = "host";
    5: Range = "range";
    6: Accept = "accept", Cookie = "cookie", Expect = "expect", Origin = "origin";
    7: Referer = "referer", Upgrade = "upgrade";
    8: IfMatch = "if-match", IfRange = "if-range";
    9: Forwarded = "forwarded";
    10: UserAgent = "user-agent", Connection = "connection";
    12: ContentType = "content-type";
    13: Authorization = "authorization", IfNoneMatch = "if-none-match", LastEventId = "last-event-id";
    14: SecFetchSite = "sec-fetch-site", ContentLength = "content-length";
    15: AcceptEncoding = "accept-encoding", AcceptLanguage = "accept-language", XForwardedFor = "x-forwarded-for";
    16: ContentEncoding = "content-encoding";
    17: IfModifiedSince = "if-modified-since", TransferEncoding = "transfer-encoding", SecWebSocketKey = "sec-websocket-key";
    19: IfUnmodifiedSince = "if-unmodified-since";
}

impl KnownField {
    /// The bit of this field in a set.
    pub(crate) const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Compares token bytes with a lower-case constant, ignoring case.
///
/// Setting bit 0x20 is exact here: of all token bytes, only letters and `-` map onto the letters
/// and `-` of the constants. The comparison works on words of four bytes. The last word overlaps
/// the one before it.
#[inline]
fn eq_ignore_case<const N: usize>(name: &[u8; N], lower: &[u8; N]) -> bool {
    const { assert!(N >= 4, "a shorter name has no whole word") };
    let unlike = |name: &[u8; 4], lower: &[u8; 4]| {
        (u32::from_ne_bytes(*name) | 0x2020_2020) ^ u32::from_ne_bytes(*lower)
    };
    let words = name.as_chunks().0.iter().zip(lower.as_chunks().0);
    let difference = words.fold(0, |difference, (name, lower)| difference | unlike(name, lower));
    let last = name.last_chunk().zip(lower.last_chunk());
    last.is_some_and(|(name, lower)| difference | unlike(name, lower) == 0)
}

/// Returns the name as an array of the length that the table states.
const fn lower_case_name<const N: usize>(name: &'static str) -> &'static [u8; N] {
    match name.as_bytes().first_chunk::<N>() {
        Some(bytes) if name.len() == N => bytes,
        _ => panic!("the table states a different length than the name has"),
    }
}

#[cfg(test)]
mod tests {
    use super::KnownField;

    #[test]
    fn finds_known_names_in_any_case() {
        for &(known, name) in KnownField::ALL {
            assert_eq!(KnownField::from_name(name.as_bytes()), Some(known));
            assert_eq!(KnownField::from_name(name.to_ascii_uppercase().as_bytes()), Some(known));
            assert_eq!(
                KnownField::from_name(name.replace('-', "_").as_bytes()).is_none(),
                name.contains('-')
            );
            assert_eq!(KnownField::from_name(&name.as_bytes()[1..]), None);
        }
    }

    /// Two differences in different words must not cancel each other out.
    #[test]
    fn rejects_names_with_equal_differences_in_two_words() {
        for &(_, name) in KnownField::ALL {
            for at in 4..name.len() {
                let mut bytes = name.as_bytes().to_vec();
                bytes[at] ^= 1;
                bytes[at - 4] ^= 1;
                assert_eq!(KnownField::from_name(&bytes), None, "{}", bytes.escape_ascii());
            }
        }
    }

    #[test]
    fn each_known_field_has_its_own_bit() {
        let all = KnownField::ALL.iter().fold(0u32, |set, (known, _)| set | known.bit());
        assert_eq!(all.count_ones() as usize, KnownField::ALL.len());
    }
}
