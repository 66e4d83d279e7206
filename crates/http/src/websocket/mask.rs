//! Decides how a mask is put on and taken off.

/// Puts the mask onto a payload, or takes it off: both are the same (RFC 6455 section 5.3).
///
/// The mask protects proxies from a page that chooses its own bytes; against others it hides nothing.
#[inline]
pub fn mask(payload: &mut [u8], key: [u8; 4]) {
    let [a, b, c, d] = key;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    // Words of eight bytes, of which the compiler makes vectors.
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
        fn each_byte_meets_its_own_byte_of_the_key(payload in vec(any::<u8>(), 0..100), key: [u8; 4]) {
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
