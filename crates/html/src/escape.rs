//! Bytes that must be escaped in a page, and their replacements.

/// The longest replacement of a byte.
pub(crate) const LONGEST: usize = b"&quot;".len();

/// The size of [`written`]'s array: one register, so that it is copied at once.
pub(crate) const SPACE: usize = 8;

/// Whether a byte needs an escape. `&` and `'` differ in one bit, `<` and `>` in another, so three
/// comparisons find all five.
#[allow(
    clippy::needless_bitwise_bool,
    reason = "a lazy operator branches, and a branch keeps a test of many bytes from becoming vector code"
)]
pub(crate) const fn is_special(byte: u8) -> bool {
    (byte | 1 == b'\'') | (byte | 2 == b'>') | (byte == b'"')
}

/// The replacement of a byte and its length. Bytes of the array past that length have no meaning.
#[inline]
pub(crate) const fn written(byte: u8) -> ([u8; SPACE], usize) {
    let entry = WRITTEN[byte as usize];
    (entry.to_le_bytes(), (entry >> LENGTH_AT) as usize)
}

/// The replacement of every byte, lowest byte first, with its length in the highest byte.
static WRITTEN: [u64; 256] = {
    let mut written = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        written[byte] = entry(byte as u8);
        byte += 1;
    }
    written
};

const LENGTH_AT: u32 = u64::BITS - 8;

const fn entry(byte: u8) -> u64 {
    let own = [byte];
    let text: &[u8] = if is_special(byte) { reference(byte) } else { &own };
    let mut entry = (text.len() as u64) << LENGTH_AT;
    let mut at = 0;
    while at < text.len() {
        entry |= (text[at] as u64) << (8 * at);
        at += 1;
    }
    entry
}

/// The character reference for a special byte. All five mean the same in HTML and in XML.
const fn reference(special: u8) -> &'static [u8] {
    match special {
        b'&' => b"&amp;",
        b'<' => b"&lt;",
        b'>' => b"&gt;",
        b'"' => b"&quot;",
        _ => b"&#39;",
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::Writer;

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        Writer::new(&mut out).text(text);
        String::from_utf8(out).unwrap()
    }

    fn unescaped(text: &str) -> String {
        text.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&#39;", "'")
            .replace("&amp;", "&")
    }

    /// Arbitrary text, and text in which nearly every byte is special.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![any::<String>(), "[&<>\"'a;l]{0,70}", "[a-z]{0,40}[&<>\"'][a-z]{0,40}"]
    }

    #[test]
    fn exactly_five_bytes_are_special() {
        let special: Vec<u8> = (0..=255).filter(|&byte| is_special(byte)).collect();
        assert_eq!(special, b"\"&'<>");
    }

    #[test]
    fn escapes_a_special_byte_at_every_position() {
        for length in 1..70 {
            for place in 0..length {
                let mut text = "x".repeat(length);
                text.replace_range(place..=place, "<");
                assert_eq!(escaped(&text), text.replace('<', "&lt;"));
            }
        }
    }

    proptest! {
        #[test]
        fn escapes_every_special_byte(text in text()) {
            let escaped = escaped(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            let ampersands = escaped.matches('&').count();
            let references = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            prop_assert_eq!(ampersands, references.iter().map(|one| escaped.matches(one).count()).sum::<usize>());
        }

        #[test]
        fn unescaping_restores_the_text(text in text()) {
            prop_assert_eq!(unescaped(&escaped(&text)), text);
        }
    }
}
