//! Base64 in both alphabets (RFC 4648).

/// Decodes the URL-safe alphabet without padding (section 5), as in tokens. Accepts only the
/// canonical encoding, so that no two texts are the same token.
pub(crate) fn url(text: &str) -> Option<Vec<u8>> {
    decode(text.as_bytes(), *b"-_")
}

/// Decodes the standard alphabet with padding and line breaks (section 4), as in PEM.
pub(crate) fn plain(text: &str) -> Option<Vec<u8>> {
    let letters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let end = letters.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    decode(letters.get(..end)?, *b"+/")
}

/// Decodes the standard alphabet with padding (section 4), as in JSON. Accepts only the canonical
/// encoding.
pub(crate) fn padded(text: &str) -> Option<Vec<u8>> {
    let letters = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    text.len().is_multiple_of(4).then(|| decode(letters.as_bytes(), *b"+/"))?
}

/// Encodes bytes as in tokens.
pub(crate) fn written(bytes: &[u8]) -> String {
    encode(bytes, *b"-_")
}

/// Encodes bytes as in JSON.
pub(crate) fn written_padded(bytes: &[u8]) -> String {
    let mut text = encode(bytes, *b"+/");
    text.push_str(["", "=", "=="][(3 - bytes.len() % 3) % 3]);
    text
}

fn encode(bytes: &[u8], last_two: [u8; 2]) -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let letter = |bits: u32| match bits & 63 {
        bits @ 0..62 => LETTERS[bits as usize],
        bits => last_two[bits as usize - 62],
    };
    let groups = bytes.chunks(3).flat_map(|three| {
        let byte = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        (0..=three.len()).map(move |place| letter(bits >> (18 - 6 * place)))
    });
    groups.map(char::from).collect()
}

fn decode(letters: &[u8], last_two: [u8; 2]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    for group in letters.chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            bits =
                bits << 6 | group.get(place).map_or(Some(0), |letter| value(*letter, last_two))?;
        }
        let [_, three @ ..] = u32::to_be_bytes(bits);
        let count = match group.len() {
            4 => 3,
            3 if three[2] == 0 => 2,
            2 if three[1..] == [0, 0] => 1,
            _ => return None,
        };
        bytes.extend_from_slice(&three[..count]);
    }
    Some(bytes)
}

fn value(letter: u8, last_two: [u8; 2]) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        _ if letter == last_two[0] => 62,
        _ if letter == last_two[1] => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{padded, plain, url, written, written_padded};

    #[test]
    fn decodes_only_canonical_encodings() {
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")]
        {
            assert_eq!(plain(text).as_deref(), Some(bytes.as_bytes()), "{text}");
            assert_eq!(padded(text).as_deref(), Some(bytes.as_bytes()), "{text}");
            assert_eq!(written_padded(bytes.as_bytes()), text);
            assert_eq!(
                url(text.trim_end_matches('=')).as_deref(),
                Some(bytes.as_bytes()),
                "{text}"
            );
        }
        // Letters outside the alphabet, padding, one letter too many, and non-zero trailing bits.
        for wrong in ["Zm+v", "Zg==", "Zm9vY", "Zh", "Zm9", "Zm 9"] {
            assert_eq!(url(wrong), None, "{wrong}");
        }
        for wrong in ["Zm-v", "Zg", "Zg=", "Zm9vY", "Zh==", "Zg==\n", "Z===", "====", "Zg==Zg=="] {
            assert_eq!(padded(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn decoding_inverts_encoding(bytes: Vec<u8>, text in "[A-Za-z0-9_-]{0,12}") {
            let text_of_bytes = written(&bytes);
            prop_assert_eq!(padded(&written_padded(&bytes)), Some(bytes.clone()));
            prop_assert_eq!(url(&text_of_bytes), Some(bytes));
            if let Some(bytes) = url(&text) {
                prop_assert_eq!(written(&bytes), text);
            }
        }
    }
}
