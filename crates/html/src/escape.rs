//! Decides which bytes of a text must not reach a page as they are, and what is written instead.

use alloc::vec::Vec;

/// Bytes tested at once. With sixteen the compiler makes one vector comparison of each test on every target.
const BLOCK: usize = 16;

/// Appends `text`, safe in element content and between double or single quotes alike.
#[inline]
pub(crate) fn escape_into(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let (clean, tail) = rest.split_at(clean_prefix(rest));
        out.extend_from_slice(clean);
        let Some((&special, tail)) = tail.split_first() else { return };
        out.extend_from_slice(reference(special));
        rest = tail;
    }
}

/// How many bytes from the start need no escape.
#[inline]
fn clean_prefix(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let clean = blocks.iter().take_while(|block| !holds_special(block)).count() * BLOCK;
    clean + bytes[clean..].iter().take_while(|&&byte| !is_special(byte)).count()
}

/// Looks at the whole block without a branch, which is what lets it become vector code.
#[inline]
fn holds_special(block: &[u8; BLOCK]) -> bool {
    block.iter().fold(false, |found, &byte| found | is_special(byte))
}

/// `&` and `'` differ in one bit, `<` and `>` in another: three comparisons find all five.
#[inline]
#[allow(
    clippy::needless_bitwise_bool,
    reason = "a lazy operator branches, and a branch keeps the block test from becoming vector code"
)]
fn is_special(byte: u8) -> bool {
    (byte | 1 == b'\'') | (byte | 2 == b'>') | (byte == b'"')
}

/// The character reference for a special byte. All five mean the same in HTML and in XML.
fn reference(special: u8) -> &'static [u8] {
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

    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        escape_into(&mut out, text);
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
