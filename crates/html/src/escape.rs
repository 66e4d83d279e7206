//! Decides which bytes of a text must not reach a page as they are, and what is written instead.

/// The most bytes that one becomes.
pub(crate) const LONGEST: usize = b"&quot;".len();

/// The space in which [`written`] tells what a byte becomes: one register, so that it moves in one piece.
pub(crate) const SPACE: usize = 8;

/// `&` and `'` differ in one bit, `<` and `>` in another: three comparisons find all five.
#[allow(
    clippy::needless_bitwise_bool,
    reason = "a lazy operator branches, and a branch keeps a test of many bytes from becoming vector code"
)]
pub(crate) const fn is_special(byte: u8) -> bool {
    (byte | 1 == b'\'') | (byte | 2 == b'>') | (byte == b'"')
}

/// What a byte becomes, in the first so many bytes; those behind it mean nothing.
#[inline]
pub(crate) const fn written(byte: u8) -> ([u8; SPACE], usize) {
    let entry = WRITTEN[byte as usize];
    (entry.to_le_bytes(), (entry >> LENGTH_AT) as usize)
}

/// For every byte what is written for it, the first byte lowest, and in the highest byte how long that is.
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

    /// Text as it comes, and text where nearly every byte is special.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![any::<String>(), "[&<>\"'a;l]{0,70}", "[a-z]{0,40}[&<>\"'][a-z]{0,40}"]
    }

    #[test]
    fn five_bytes_are_special_and_no_other() {
        let special: Vec<u8> = (0..=255).filter(|&byte| is_special(byte)).collect();
        assert_eq!(special, b"\"&'<>");
    }

    #[test]
    fn a_special_byte_is_found_wherever_it_stands() {
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
        fn nothing_special_is_left(text in text()) {
            let escaped = escaped(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            let ampersands = escaped.matches('&').count();
            let references = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            prop_assert_eq!(ampersands, references.iter().map(|one| escaped.matches(one).count()).sum::<usize>());
        }

        #[test]
        fn a_reader_gets_back_what_was_written(text in text()) {
            prop_assert_eq!(unescaped(&escaped(&text)), text);
        }
    }
}
