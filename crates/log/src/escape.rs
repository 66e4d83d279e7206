//! Escapes text from clients: it cannot end a line or a field, and cannot control a terminal.

/// Bytes that are escaped within a value because a log reader would take them for its end.
pub(crate) type Delimiters = [u8; 4];
/// The delimiters of a value in quotes.
pub(crate) const QUOTE: Delimiters = [b'"'; 4];

/// How a character that may not appear in a field is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Escaping {
    /// `\"`, `\\`, and `\xHH` for a byte that is not printable ASCII.
    Classic,
    /// As in a JSON string (RFC 8259 section 7), in ASCII; invalid UTF-8 becomes U+FFFD.
    Json,
}

/// The length at which a value from a client is truncated, in bytes.
const MAX_TEXT: usize = 2048;

impl Escaping {
    /// Appends `text` to `line`, with special bytes and `delimiters` escaped.
    pub(crate) fn push(self, line: &mut Vec<u8>, text: &[u8], delimiters: Delimiters) {
        let mut rest = &text[..text.len().min(MAX_TEXT)];
        // Text without special bytes is copied at once: most values have none.
        while let Some(at) = first_special(rest, delimiters) {
            let (plain, special) = rest.split_at(at);
            line.extend_from_slice(plain);
            rest = match self {
                Self::Classic => {
                    push_classic(line, special[0]);
                    &special[1..]
                }
                Self::Json if special[0].is_ascii() => {
                    push_json(line, u16::from(special[0]));
                    &special[1..]
                }
                Self::Json => return push_unicode(line, special),
            };
        }
        line.extend_from_slice(rest);
    }
}

/// Returns the position of the first byte that must be escaped. Most texts have no such byte, so
/// sixteen bytes are compared together.
#[expect(clippy::needless_bitwise_bool, reason = "a branch per byte would prevent vectorization")]
fn first_special(text: &[u8], delimiters: Delimiters) -> Option<usize> {
    let [first, second, third, fourth] = delimiters;
    let is_special = |byte: u8| {
        !(b' '..=b'~').contains(&byte)
            | (byte == b'"')
            | (byte == b'\\')
            | (byte == first)
            | (byte == second)
            | (byte == third)
            | (byte == fourth)
    };
    let (chunks, _) = text.as_chunks::<16>();
    // No branch inside the loop, so that the compiler vectorizes it.
    let any = |chunk: &[u8; 16]| chunk.iter().fold(false, |any, byte| any | is_special(*byte));
    let clean = chunks.iter().take_while(|chunk| !any(chunk)).count() * 16;
    text[clean..].iter().position(|byte| is_special(*byte)).map(|at| clean + at)
}

fn push_classic(line: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
        _ => line.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(byte)]),
    }
}

fn push_json(line: &mut Vec<u8>, unit: u16) {
    match u8::try_from(unit) {
        Ok(byte @ (b'"' | b'\\')) => line.extend_from_slice(&[b'\\', byte]),
        _ => {
            let [high, low] = unit.to_be_bytes();
            let digits = [digit(high >> 4), digit(high), digit(low >> 4), digit(low)];
            line.extend_from_slice(b"\\u");
            line.extend_from_slice(&digits);
        }
    }
}

/// Appends text that is not pure ASCII, which is rare.
fn push_unicode(line: &mut Vec<u8>, text: &[u8]) {
    for chunk in text.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match u8::try_from(letter) {
                Ok(byte) if first_special(&[byte], QUOTE).is_none() => line.push(byte),
                _ => {
                    for unit in letter.encode_utf16(&mut [0; 2]) {
                        push_json(line, *unit);
                    }
                }
            }
        }
        if !chunk.invalid().is_empty() {
            push_json(line, 0xfffd);
        }
    }
}

const fn digit(half: u8) -> u8 {
    b"0123456789abcdef"[(half & 15) as usize]
}

/// Appends a number in decimal, faster than `write!` does.
pub(crate) fn push_number(line: &mut Vec<u8>, mut number: u64) {
    // A u64 has at most 20 digits.
    let mut digits = [0; 20];
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(escaping: Escaping, text: &[u8], expected: &str) {
        let mut line = Vec::new();
        escaping.push(&mut line, text, QUOTE);
        assert_eq!(std::str::from_utf8(&line), Ok(expected));
    }

    #[test]
    fn escapes_client_text_within_its_field() {
        let hostile = b"a\"b\\c\r\n\x1b[31m\xe2\x80\xa8\x9b";
        check(Escaping::Classic, hostile, r#"a\"b\\c\x0d\x0a\x1b[31m\xe2\x80\xa8\x9b"#);
        check(Escaping::Json, hostile, r#"a\"b\\c\u000d\u000a\u001b[31m\u2028\ufffd"#);
        check(Escaping::Json, "\u{1f343}=\"".as_bytes(), r#"\ud83c\udf43=\""#);
    }

    #[test]
    fn escapes_field_delimiters() {
        let mut line = Vec::new();
        Escaping::Classic.push(&mut line, b"a b|c", *b" ||[");
        assert_eq!(line, b"a\\x20b\\x7cc");
    }

    /// Each byte at each place of a chunk of sixteen, with delimiters that are no special bytes.
    #[test]
    fn escapes_exactly_the_special_bytes_at_any_place() {
        let delimiters = *b" |[]";
        for byte in 0..=u8::MAX {
            let is_special = !(b' '..=b'~').contains(&byte) || b"\"\\ |[]".contains(&byte);
            for place in [0, 15, 16, 40] {
                let mut text = vec![b'x'; 41];
                text[place] = byte;
                let expected = is_special.then_some(place);
                assert_eq!(first_special(&text, delimiters), expected, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn escapes_byte_that_is_special_twice() {
        for (byte, delimiters) in [(b'\\', *b"\\|[]"), (b']', *b" |]]"), (b'"', QUOTE)] {
            assert_eq!(first_special(&[b'x', byte], delimiters), Some(1), "{delimiters:?}");
        }
    }

    #[test]
    fn truncates_long_text() {
        let mut line = Vec::new();
        Escaping::Classic.push(&mut line, &vec![b'x'; 1 << 20], QUOTE);
        assert_eq!(line.len(), MAX_TEXT);
    }

    #[test]
    fn writes_numbers_in_decimal() {
        for number in [0, 7, 10, 1_234_567_890, u64::MAX] {
            let mut line = Vec::new();
            push_number(&mut line, number);
            assert_eq!(line, number.to_string().as_bytes());
        }
    }
}
