//! The content codings.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
