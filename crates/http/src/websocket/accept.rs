//! The key of a handshake and the value that accepts it.

use sha1_smol::Sha1;

/// The fixed text that only a WebSocket server appends to the key (RFC 6455 section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the value of `Sec-WebSocket-Accept` for this key: base64 of the SHA-1 of key and GUID
/// (RFC 6455 section 4.2.2).
///
/// The value proves that a WebSocket server answered this request. It protects no secret, so the
/// weakness of SHA-1 does not matter.
pub fn accept_key(key: &[u8]) -> [u8; 28] {
    let mut hash = Sha1::new();
    hash.update(key);
    hash.update(GUID);
    base64(hash.digest().bytes())
}

/// Returns whether the key is sixteen bytes in base64. Their value has no meaning.
pub(super) fn is_key(key: &[u8]) -> bool {
    matches!(key, [digits @ .., b'=', b'='] if digits.len() == 22
        && digits.iter().all(|byte| ALPHABET.contains(byte)))
}

/// Encodes twenty bytes in base64: six groups of three bytes and one of two.
fn base64(bytes: [u8; 20]) -> [u8; 28] {
    let mut out = [b'='; 28];
    for (group, out) in bytes.chunks(3).zip(out.chunks_mut(4)) {
        let joined = group.iter().fold(0u32, |joined, &byte| joined << 8 | u32::from(byte));
        let joined = joined << (8 * (3 - group.len()));
        for (at, digit) in out.iter_mut().take(group.len() + 1).enumerate() {
            *digit = ALPHABET[(joined >> (18 - 6 * at)) as usize & 63];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{accept_key, is_key};

    #[test]
    fn computes_accept_value_of_rfc_example() {
        assert_eq!(&accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn key_is_sixteen_bytes_in_base64() {
        assert!(is_key(b"dGhlIHNhbXBsZSBub25jZQ=="));
        for key in [
            "",
            "==",
            "dGhlIHNhbXBsZSBub25jZQ",
            "dGhlIHNhbXBsZSBub25jZQ=",
            "dGhlIHNhbXBsZSBub25j====",
            "dGhlIHNhbXBsZSBub25jZQ== ",
            "dGhlIHNhbXBsZSBub25j-Q==",
            "dGhlIHNhbXBsZSBub25jZWU=",
        ] {
            assert!(!is_key(key.as_bytes()), "{key}");
        }
    }
}
