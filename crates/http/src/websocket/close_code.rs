//! Decides which numbers may say why a connection closes.

/// Why a WebSocket closes: a number that may stand in a close frame (RFC 6455 section 7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloseCode(u16);

impl CloseCode {
    /// 1000: what the connection was for is done.
    pub const NORMAL: Self = Self(1000);
    /// 1001: the server goes down, or the browser leaves the page.
    pub const GOING_AWAY: Self = Self(1001);
    /// 1002: the peer broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// 1003: data of a kind that is not taken here, such as binary.
    pub const UNSUPPORTED_DATA: Self = Self(1003);
    /// 1007: text that is not UTF-8.
    pub const INVALID_PAYLOAD: Self = Self(1007);
    /// 1008: the peer broke a rule that no other number names.
    pub const POLICY_VIOLATION: Self = Self(1008);
    /// 1009: the message is too large.
    pub const MESSAGE_TOO_BIG: Self = Self(1009);
    /// 1011: the server failed.
    pub const INTERNAL_ERROR: Self = Self(1011);
    /// 1012: the server restarts; come back after a while of random length.
    pub const SERVICE_RESTART: Self = Self(1012);
    /// 1013: the server has too much to do; come back later.
    pub const TRY_AGAIN_LATER: Self = Self(1013);

    /// The code of this number, if it may be sent: one that is registered for frames, or from 3000 to 4999.
    ///
    /// 1005, 1006 and 1015 say that there was no frame, so none may carry them.
    pub const fn new(number: u16) -> Option<Self> {
        match number {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Some(Self(number)),
            _ => None,
        }
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::CloseCode;

    #[test]
    fn a_code_is_registered_for_frames_or_private() {
        for number in [1000, 1003, 1007, 1014, 3000, 4999] {
            assert_eq!(CloseCode::new(number).map(CloseCode::number), Some(number));
        }
        for number in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, u16::MAX] {
            assert_eq!(CloseCode::new(number), None);
        }
    }
}
