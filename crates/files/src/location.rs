//! Decides how a redirect to a directory's own path is written.

use std::fmt::Write as _;

/// The path-absolute reference (RFC 3986 section 4.2) for a decoded path, a slash and the query as it was sent.
pub(crate) fn of_directory(path: &str, query: Option<&str>) -> String {
    let mut location = String::with_capacity(path.len() + query.map_or(0, str::len) + 16);
    encode(&mut location, path, stands_in_path);
    location.push('/');
    if let Some(query) = query {
        location.push('?');
        // It is encoded already; whatever could still end the field line or the field is not.
        encode(&mut location, query, |byte| byte.is_ascii_graphic());
    }
    location
}

/// The address of what is called `name`, seen from its folder. Whatever the name, it is no other scheme or host.
pub(crate) fn of_entry(name: &str) -> String {
    let mut location = String::from("./");
    encode(&mut location, name, stands_in_path);
    // The one letter of a path that means something in HTML as well.
    location.replace('&', "&amp;")
}

fn encode(location: &mut String, text: &str, stands: impl Fn(u8) -> bool) {
    for byte in text.bytes() {
        if stands(byte) {
            location.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(location, "%{byte:02X}");
        }
    }
}

/// The bytes of `pchar` that need no encoding, and the slash (RFC 3986 section 3.3).
///
/// The backslash is not among them, so no browser reads `/\host` as `//host`.
fn stands_in_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::of_directory;

    #[test]
    fn a_plain_path_gets_its_slash() {
        assert_eq!(of_directory("/a/b", None), "/a/b/");
    }

    #[test]
    fn the_query_is_kept_as_it_was_sent() {
        assert_eq!(of_directory("/a", Some("b=%20c&d=/?|")), "/a/?b=%20c&d=/?|");
        assert_eq!(of_directory("/a", Some("")), "/a/?");
    }

    #[test]
    fn a_query_never_ends_the_line() {
        assert_eq!(of_directory("/a", Some("b\r\nc: d \u{e4}")), "/a/?b%0D%0Ac:%20d%20%C3%A4");
    }

    #[test]
    fn what_a_path_may_not_hold_is_encoded() {
        assert_eq!(of_directory("/a b/\u{e4}", None), "/a%20b/%C3%A4/");
        assert_eq!(of_directory("/50%?#", None), "/50%25%3F%23/");
        assert_eq!(of_directory("/a\"<>\r\n", None), "/a%22%3C%3E%0D%0A/");
        assert_eq!(of_directory("/it's:(a)@b;c", None), "/it's:(a)@b;c/");
    }

    #[test]
    fn a_backslash_cannot_pose_as_a_slash() {
        assert_eq!(of_directory("/\\evil.example", None), "/%5Cevil.example/");
    }
}
