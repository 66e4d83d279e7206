//! Security headers that a server adds to each response.

/// A set of security headers. [`Reply::begin`](crate::Reply::begin) writes those that the
/// [`Exchange`](crate::Exchange) asks for, from bytes that are prepared at compile time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SecurityHeaders(u8);

impl SecurityHeaders {
    /// No header.
    pub const NONE: Self = Self(0);
    /// `X-Content-Type-Options: nosniff`: a browser never guesses a different media type (Fetch
    /// section 3.7).
    pub const NOSNIFF: Self = Self(1);
    /// `X-Frame-Options: SAMEORIGIN`: only pages of the same origin embed the response (HTML
    /// section 7.6.1).
    pub const SAME_ORIGIN_FRAMES: Self = Self(2);
    /// `X-Frame-Options: DENY`: no page embeds the response.
    pub const NO_FRAMES: Self = Self(4);

    /// The header lines of each set. A set with both kinds of frame protection has the stricter
    /// one.
    const LINES: [&str; 8] = [
        "",
        "X-Content-Type-Options: nosniff\r\n",
        "X-Frame-Options: SAMEORIGIN\r\n",
        "X-Content-Type-Options: nosniff\r\nX-Frame-Options: SAMEORIGIN\r\n",
        "X-Frame-Options: DENY\r\n",
        "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n",
        "X-Frame-Options: DENY\r\n",
        "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n",
    ];

    /// The headers of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The headers of this set that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all headers of `other` are in this set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the headers that a header with this name replaces.
    pub fn named(name: &str) -> Self {
        if name.eq_ignore_ascii_case("x-content-type-options") {
            Self::NOSNIFF
        } else if name.eq_ignore_ascii_case("x-frame-options") {
            Self::SAME_ORIGIN_FRAMES.with(Self::NO_FRAMES)
        } else {
            Self::NONE
        }
    }

    /// The header lines, each with its CRLF.
    #[inline]
    pub(crate) const fn lines(self) -> &'static str {
        Self::LINES[(self.0 & 7) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::SecurityHeaders;

    #[test]
    fn writes_each_header_of_a_set_once() {
        let all = [
            (SecurityHeaders::NOSNIFF, "X-Content-Type-Options: nosniff\r\n"),
            (SecurityHeaders::SAME_ORIGIN_FRAMES, "X-Frame-Options: SAMEORIGIN\r\n"),
            (SecurityHeaders::NO_FRAMES, "X-Frame-Options: DENY\r\n"),
        ];
        for bits in 0..8 {
            let set = SecurityHeaders(bits);
            let is_denied = set.has(SecurityHeaders::NO_FRAMES);
            for (header, line) in all {
                let is_replaced = header == SecurityHeaders::SAME_ORIGIN_FRAMES && is_denied;
                let count = usize::from(set.has(header) && !is_replaced);
                assert_eq!(set.lines().matches(line).count(), count, "{bits} {line}");
            }
        }
    }

    #[test]
    fn joins_sets_that_share_a_header() {
        let both = SecurityHeaders::NOSNIFF.with(SecurityHeaders::NO_FRAMES);
        assert_eq!(both.with(SecurityHeaders::NOSNIFF), both);
        assert_eq!(both.with(both), both);
    }

    #[test]
    fn removes_headers_by_name_in_any_case() {
        let set = SecurityHeaders::NOSNIFF.with(SecurityHeaders::NO_FRAMES);
        let without = |name| set.without(SecurityHeaders::named(name));
        assert_eq!(without("X-CONTENT-type-options"), SecurityHeaders::NO_FRAMES);
        assert_eq!(without("x-frame-options"), SecurityHeaders::NOSNIFF);
        assert_eq!(without("Server"), set);
    }
}
