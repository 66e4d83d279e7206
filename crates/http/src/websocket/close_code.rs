//! The status codes of close frames.

/// A status code that is allowed in a close frame (RFC 6455 section 7.4). The constants have the
/// names of the IANA registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloseCode(u16);

impl CloseCode {
    /// 1000: the connection has fulfilled its purpose.
    pub const NORMAL: Self = Self(1000);
    /// 1001: the server shuts down, or the browser leaves the page.
    pub const GOING_AWAY: Self = Self(1001);
    /// 1002: the client violated the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// 1003: the endpoint does not accept this type of data, such as binary.
    pub const UNSUPPORTED_DATA: Self = Self(1003);
    /// 1007: text that is not UTF-8.
    pub const INVALID_PAYLOAD: Self = Self(1007);
    /// 1008: the client violated a rule that no other code covers.
    pub const POLICY_VIOLATION: Self = Self(1008);
    /// 1009: the message is too large.
    pub const MESSAGE_TOO_BIG: Self = Self(1009);
    /// 1011: an unexpected error of the server.
    pub const INTERNAL_ERROR: Self = Self(1011);
    /// 1012: the server restarts. Reconnect after a random delay.
    pub const SERVICE_RESTART: Self = Self(1012);
    /// 1013: the server is overloaded. Reconnect later.
    pub const TRY_AGAIN_LATER: Self = Self(1013);

    /// Returns the code with this number, if a close frame may carry it: a number registered for
    /// frames, or one from 3000 to 4999.
    ///
    /// 1005, 1006 and 1015 report a missing close frame, so no frame may carry them.
    pub const fn new(number: u16) -> Option<Self> {
        match number {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Some(Self(number)),
            _ => None,
        }
    }

    /// Returns the number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::CloseCode;

    #[test]
    fn accepts_registered_and_private_codes() {
        for number in [1000, 1003, 1007, 1014, 3000, 4999] {
            assert_eq!(CloseCode::new(number).map(CloseCode::number), Some(number));
        }
        for number in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, u16::MAX] {
            assert_eq!(CloseCode::new(number), None);
        }
    }
}
