//! Decides how a peer's bytes stand in a line: nothing they hold ends the line, the field they
//! stand in, or a terminal's patience.

/// Bytes that would mislead a reader within a value.
pub(crate) type Ends = [u8; 4];
/// The ends of a value between quotes.
pub(crate) const QUOTE: Ends = [b'"'; 4];

/// How what cannot stand in a field is spelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Escaping {
    /// `\"`, `\\`, and `\xHH` for a byte that is not printable ASCII.
    Classic,
    /// As in a JSON string (RFC 8259 section 7), in ASCII; what is no UTF-8 becomes U+FFFD.
    Json,
}

/// A peer's text in a line is cut here.
const LONGEST: usize = 2048;

impl Escaping {
    /// Adds `text` to `line`. `ends` would end the field for a reader, so they are spelled out too.
    pub(crate) fn push(self, line: &mut Vec<u8>, text: &[u8], ends: Ends) {
        let mut rest = &text[..text.len().min(LONGEST)];
        // Whole runs are copied: nearly every text is one.
        while let Some(at) = first_special(rest, ends) {
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

/// Where the first byte is that does not stand for itself: in most texts nowhere, so sixteen bytes
/// are looked at together.
#[expect(clippy::needless_bitwise_bool, reason = "a branch per byte would keep them apart")]
fn first_special(text: &[u8], ends: Ends) -> Option<usize> {
    let [first, second, third, fourth] = ends;
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
    // Without a branch inside, so that the compiler makes it a few instructions.
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

/// Text with more than ASCII in it, which is rare.
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

/// Adds a number in decimal, without the machinery of `write!`.
pub(crate) fn push_number(line: &mut Vec<u8>, mut number: u64) {
    // 20 digits: the longest a u64 has.
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
        let nasty = b"a\"b\\c\r\n\x1b[31m\xe2\x80\xa8\x9b";
        check(Escaping::Classic, nasty, r#"a\"b\\c\x0d\x0a\x1b[31m\xe2\x80\xa8\x9b"#);
        check(Escaping::Json, nasty, r#"a\"b\\c\u000d\u000a\u001b[31m\u2028\ufffd"#);
        check(Escaping::Json, "\u{1f343}=\"".as_bytes(), r#"\ud83c\udf43=\""#);
    }

    #[test]
    fn escapes_field_delimiters() {
        let mut line = Vec::new();
        Escaping::Classic.push(&mut line, b"a b|c", *b" ||[");
        assert_eq!(line, b"a\\x20b\\x7cc");
    }

    #[test]
    fn truncates_long_text() {
        let mut line = Vec::new();
        Escaping::Classic.push(&mut line, &vec![b'x'; 1 << 20], QUOTE);
        assert_eq!(line.len(), LONGEST);
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
