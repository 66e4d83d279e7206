//! Classes of bytes in the grammar: token bytes and control bytes.

/// Returns whether these bytes form a token (RFC 9110 section 5.6.2).
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_token_byte(byte))
}

/// Returns whether the byte is a control byte, including DEL.
pub(crate) const fn is_control(byte: u8) -> bool {
    byte < b' ' || byte == 0x7f
}

/// Returns whether the byte is allowed in a token.
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

#[cfg(test)]
mod tests {
    use super::is_token;

    #[test]
    fn token_bytes_match_grammar() {
        let tokens = (0..=255u8).filter(|&byte| is_token(&[byte])).count();
        assert_eq!(tokens, 10 + 26 + 26 + 15);
        assert!(is_token(b"!#$%&'*+-.^_`|~"));
        assert!(!is_token(b""));
    }
}
