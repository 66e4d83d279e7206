//! Encodes the URLs of directories and of directory entries.

use std::fmt::Write as _;

/// Returns the path-absolute reference (RFC 3986 section 4.2) for a decoded path with a trailing
/// slash, followed by the query as it was received.
pub(crate) fn directory_location(path: &str, query: Option<&str>) -> String {
    let mut location = String::with_capacity(path.len() + query.map_or(0, str::len) + 16);
    encode(&mut location, path, is_path_byte);
    location.push('/');
    if let Some(query) = query {
        location.push('?');
        // The query is encoded already. Only bytes that could end the field line or the field are
        // encoded again.
        encode(&mut location, query, |byte| byte.is_ascii_graphic());
    }
    location
}

/// Returns the URL of an entry relative to its directory. No name can change the scheme or the
/// host.
pub(crate) fn entry_location(name: &str) -> String {
    let mut location = String::from("./");
    encode(&mut location, name, is_path_byte);
    // The only character of an encoded path that is special in HTML.
    location.replace('&', "&amp;")
}

fn encode(location: &mut String, text: &str, is_plain: impl Fn(u8) -> bool) {
    for byte in text.bytes() {
        if is_plain(byte) {
            location.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(location, "%{byte:02X}");
        }
    }
}

/// Whether a byte needs no encoding in a path: the bytes of `pchar`, and the slash (RFC 3986
/// section 3.3).
///
/// A backslash is encoded, so that no browser reads `/\host` as `//host`.
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::directory_location;

    #[test]
    fn appends_slash_to_path() {
        assert_eq!(directory_location("/a/b", None), "/a/b/");
    }

    #[test]
    fn keeps_query_unchanged() {
        assert_eq!(directory_location("/a", Some("b=%20c&d=/?|")), "/a/?b=%20c&d=/?|");
        assert_eq!(directory_location("/a", Some("")), "/a/?");
    }

    #[test]
    fn encodes_line_ends_in_query() {
        assert_eq!(
            directory_location("/a", Some("b\r\nc: d \u{e4}")),
            "/a/?b%0D%0Ac:%20d%20%C3%A4"
        );
    }

    #[test]
    fn encodes_characters_that_a_path_must_not_contain() {
        assert_eq!(directory_location("/a b/\u{e4}", None), "/a%20b/%C3%A4/");
        assert_eq!(directory_location("/50%?#", None), "/50%25%3F%23/");
        assert_eq!(directory_location("/a\"<>\r\n", None), "/a%22%3C%3E%0D%0A/");
        assert_eq!(directory_location("/it's:(a)@b;c", None), "/it's:(a)@b;c/");
    }

    #[test]
    fn encodes_backslash() {
        assert_eq!(directory_location("/\\evil.example", None), "/%5Cevil.example/");
    }
}
