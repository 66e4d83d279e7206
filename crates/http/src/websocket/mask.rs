//! Masking of payloads.

/// Masks or unmasks a payload: both are the same operation (RFC 6455 section 5.3).
///
/// Masking protects proxies from pages that choose the bytes they send. It keeps no secret.
#[inline]
pub fn mask(payload: &mut [u8], key: [u8; 4]) {
    let [a, b, c, d] = key;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    // The compiler emits vector instructions for these words of eight bytes.
    let (words, rest) = payload.as_chunks_mut();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key.into_iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    use super::mask;

    proptest! {
        #[test]
        fn combines_each_byte_with_its_key_byte(payload in vec(any::<u8>(), 0..100), key: [u8; 4]) {
            let mut masked = payload.clone();
            mask(&mut masked, key);
            for (at, (masked, byte)) in masked.iter().zip(&payload).enumerate() {
                assert_eq!(*masked, byte ^ key[at % 4]);
            }
            mask(&mut masked, key);
            assert_eq!(masked, payload);
        }
    }
}
