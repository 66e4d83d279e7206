//! Resolves links against the address of a page and encodes form data.

use std::net::SocketAddr;

/// Resolves `link` against the page at `from` (RFC 3986 section 5.2) and returns path and query.
/// The error is an absolute address of another site.
pub(super) fn joined(from: &str, link: &str, site: SocketAddr) -> Result<String, String> {
    let link = link.trim();
    let (link, _) = link.split_once('#').unwrap_or((link, ""));
    let path_end = |of: &str| of.find('?').unwrap_or(of.len());
    let scheme = link.find([':', '/', '?']).filter(|place| link.as_bytes()[*place] == b':');
    let whole = match scheme {
        Some(_) => link.strip_prefix("http:").unwrap_or(""),
        None => link,
    };
    if let Some(rest) = whole.strip_prefix("//") {
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if host != site.to_string() {
            return Err(link.to_owned());
        }
        return Ok(plain(if path.starts_with('/') { "" } else { "/" }, path));
    }
    if scheme.is_some() {
        return Err(link.to_owned());
    }
    let from_path = &from[..path_end(from)];
    Ok(match link.as_bytes().first() {
        None => from.to_owned(),
        Some(b'?') => [from_path, link].concat(),
        Some(b'/') => plain("", link),
        Some(_) => plain(&from_path[..=from_path.rfind('/').unwrap_or(0)], link),
    })
}

/// Joins the two and removes dot segments (RFC 3986 section 5.2.4).
fn plain(folder: &str, link: &str) -> String {
    let (path, query) = link.split_at(link.find('?').unwrap_or(link.len()));
    let path = [folder, path].concat();
    let mut segments: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "." => {}
            ".." => _ = segments.pop(),
            part => segments.push(part),
        }
        if is_last && matches!(part, "." | "..") {
            segments.push("");
        }
    }
    format!("/{}{query}", segments.join("/"))
}

/// Returns the path of a target without its query.
pub(super) fn path(target: &str) -> &str {
    target.split_once('?').map_or(target, |(path, _)| path)
}

/// Encodes an address as a browser does, without its fragment.
pub(super) fn sent(target: &str) -> String {
    let (target, _) = target.split_once('#').unwrap_or((target, ""));
    let mut sent = String::new();
    for byte in target.bytes() {
        match byte {
            b'!' | b'#'..=b';' | b'=' | b'?'..=b'_' | b'a'..=b'~' => sent.push(byte.into()),
            byte => push_encoded(byte, &mut sent),
        }
    }
    sent
}

/// Encodes names and values as `application/x-www-form-urlencoded` (URL Standard section 5.2).
pub(super) fn encoded<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push('&');
        }
        encode(name, &mut text);
        text.push('=');
        encode(value, &mut text);
    }
    text
}

fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => {
                out.push(byte.into());
            }
            b' ' => out.push('+'),
            byte => push_encoded(byte, out),
        }
    }
}

fn push_encoded(byte: u8, out: &mut String) {
    let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value)]);
    out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, link: &str, expected: Result<&str, &str>) {
        let site = "127.0.0.1:80".parse().unwrap();
        let joined = joined(from, link, site);
        assert_eq!(joined.as_deref().map_err(|other| &**other), expected);
    }

    #[test]
    fn resolves_links_against_their_page() {
        check("/a/b?c=1", "d", Ok("/a/d"));
        check("/a/b?c=/1", "?d", Ok("/a/b?d"));
        check("/a/b?c", "", Ok("/a/b?c"));
        check("/a/b?c", "#d", Ok("/a/b?c"));
        check("/a/b/", "../d?e=/../", Ok("/a/d?e=/../"));
        check("/a/b/c", "./", Ok("/a/b/"));
        check("/a/b/c", "..", Ok("/a/"));
        check("/a", "../../d", Ok("/d"));
        check("/a", "/d#e", Ok("/d"));
        check("/a", "//127.0.0.1:80", Ok("/"));
        check("/a", "http://127.0.0.1:80/d?e", Ok("/d?e"));
    }

    #[test]
    fn rejects_links_to_other_sites() {
        for link in ["https://127.0.0.1:80/", "http://example.org/", "//example.org/", "mailto:a@b"]
        {
            check("/a", link, Err(link));
        }
    }

    #[test]
    fn encodes_reserved_characters_of_addresses() {
        assert_eq!(sent("/b\u{e4}r/a b?c=\"%20&d=1+1#e"), "/b%C3%A4r/a%20b?c=%22%20&d=1+1");
    }

    #[test]
    fn encodes_form_fields() {
        assert_eq!(encoded([("a b", "1&2"), ("c", "\u{e4}~")]), "a+b=1%262&c=%C3%A4%7E");
    }
}
