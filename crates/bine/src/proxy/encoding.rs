//! Encodes a decoded path for a request line.

/// Appends `path` to `to`. Encodes every byte that is not allowed in a path (RFC 3986 section 3.3), so
/// that the path decodes to the same text again.
pub(super) fn append_path(to: &mut Vec<u8>, path: &str) {
    for byte in path.bytes() {
        if is_plain(byte) {
            to.push(byte);
        } else {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            to.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'@'
                | b'/'
        )
}

#[cfg(test)]
mod tests {
    use bine_http::{Event, Limits, RequestParser};
    use proptest::prelude::*;

    use super::*;

    fn encoded(path: &str) -> String {
        let mut to = Vec::new();
        append_path(&mut to, path);
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn encodes_what_a_path_may_not_contain() {
        assert_eq!(encoded("/a-b/c;d=1"), "/a-b/c;d=1");
        assert_eq!(encoded("/a b?c#d%e"), "/a%20b%3Fc%23d%25e");
        assert_eq!(encoded("/\u{e4}"), "/%C3%A4");
    }

    proptest! {
        #[test]
        fn encoded_path_decodes_to_the_same_path(path in "/[a-z%?#\u{e4} <>]{0,8}") {
            let request = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", encoded(&path));
            let mut parser = RequestParser::new();
            let Event::Head(head) = parser.receive(request.as_bytes(), &Limits::default()).event
            else {
                panic!("it is a request: {request}");
            };
            prop_assert_eq!(head.path(), path);
        }
    }
}
