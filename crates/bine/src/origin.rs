//! Protection against cross-site requests: whether a request originates from a page of this site.
//!
//! A browser sends the user's cookies with requests from any page, and a form of a foreign site can
//! post here without permission. Code that changes something or acts for a user checks this first.

use bine_http::Head;

/// Whether a page of a foreign site may have sent the request: the browser states it, or the
/// request has cookies and no statement. The latter is an old browser: programs state no origin and
/// send no cookies.
pub(crate) fn may_be_foreign(head: &Head<'_>) -> bool {
    let is_said = head.field("sec-fetch-site").or_else(|| head.field("origin")).is_some();
    is_foreign(head) || !is_said && head.field("cookie").is_some()
}

/// Whether the browser marks the request as cross-site (Fetch Metadata section 2.1), or names a
/// foreign origin (RFC 6454).
pub(crate) fn is_foreign(head: &Head<'_>) -> bool {
    if let Some(site) = head.field("sec-fetch-site") {
        return !matches!(site, b"same-origin" | b"none");
    }
    let origin = head.field("origin");
    origin.is_some_and(|origin| !str::from_utf8(origin).is_ok_and(|origin| is_own(head, origin)))
}

/// Whether an origin, or an address with one, belongs to the request's host. `null` never does.
fn is_own(head: &Head<'_>, address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once("://") else { return false };
    let host = rest.split('/').next().unwrap_or_default();
    matches!(scheme, "http" | "https") && Some(host) == head.authority()
}

/// The page of this site that sent the request, according to its `Referer` (RFC 9110 section
/// 10.1.3).
pub(crate) fn page_before<'h>(head: &Head<'h>) -> Option<&'h str> {
    head.field_text("referer").filter(|address| is_own(head, address))
}

/// The path and query of an absolute address, without the fragment.
pub(crate) fn target_of(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    rest.get(rest.find('/')?..)?.split('#').next()
}

/// Whether every browser resolves this address as a path of this site, with or without a query.
/// Browsers treat `\\` as `/`, so that a host may follow a pair, and ignore tabs and line breaks.
pub(crate) fn is_path(address: &str) -> bool {
    let mut letters = address.bytes();
    letters.next() == Some(b'/')
        && !matches!(letters.next(), Some(b'/' | b'\\'))
        && !address.bytes().any(|letter| letter.is_ascii_control())
}

#[cfg(test)]
mod tests {
    use bine_http::{Event, Limits, RequestParser};

    use super::*;

    #[track_caller]
    fn check(fields: &str, expected: (bool, bool), page: Option<&str>) {
        let request = format!("POST / HTTP/1.1\r\nHost: a.example:81\r\n{fields}\r\n");
        let mut machine = RequestParser::new();
        let Event::Head(head) = machine.receive(request.as_bytes(), &Limits::default()).event
        else {
            panic!("{request}");
        };
        assert_eq!((is_foreign(&head), may_be_foreign(&head)), expected, "{fields}");
        assert_eq!(page_before(&head), page, "{fields}");
    }

    #[test]
    fn fetch_metadata_takes_precedence_over_origin() {
        check("Sec-Fetch-Site: same-origin\r\nOrigin: http://b\r\n", (false, false), None);
        check("Sec-Fetch-Site: none\r\nCookie: a=b\r\n", (false, false), None);
        for site in ["same-site", "cross-site", "Same-Origin", ""] {
            let fields = format!("Sec-Fetch-Site: {site}\r\nOrigin: http://a.example:81\r\n");
            check(&fields, (true, true), None);
        }
    }

    #[test]
    fn accepts_only_origins_equal_to_the_host() {
        for own in ["http://a.example:81", "https://a.example:81"] {
            check(&format!("Origin: {own}\r\nCookie: a=b\r\n"), (false, false), None);
        }
        for other in [
            "null",
            "",
            "http://a.example",
            "http://A.example:81",
            "ftp://a.example:81",
            "//a.example:81",
        ] {
            check(&format!("Origin: {other}\r\n"), (true, true), None);
        }
    }

    #[test]
    fn requests_without_origin_and_cookies_are_not_browsers() {
        check("", (false, false), None);
        check("Cookie: a=b\r\n", (false, true), None);
    }

    #[test]
    fn rejects_paths_that_lead_to_another_site() {
        for own in ["/", "/a", "/a//b", "/?a=//b", "/#//b", "/%5Cb", "/./\\b"] {
            assert!(is_path(own), "{own:?}");
        }
        for other in
            ["", "a", "//b", "/\\b", "\\/b", "http://b", "/\t/b", "/a\r\nB: c", "?a", " /a"]
        {
            assert!(!is_path(other), "{other:?}");
        }
    }

    #[test]
    fn accepts_only_referers_of_this_site() {
        let own = "http://a.example:81//b/c?d";
        check(&format!("Referer: {own}\r\n"), (false, false), Some(own));
        for other in
            ["http://b/", "http://a.example:81.b/", "http://a.example:81@b/", "/a", "data:a"]
        {
            check(&format!("Referer: {other}\r\n"), (false, false), None);
        }
    }
}
