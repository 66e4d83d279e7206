//! Decides whether a request that may change something comes from a page of this very site.
//!
//! A browser sends the visitor's cookies wherever a page comes from, and a form of another site can post here without
//! asking. So what changes something, or speaks for a visitor, asks this first.

use bine_http::Head;

/// Whether a page of another site may ask: a browser says so, or there are cookies and nothing is said. That would be an
/// old browser: a program that is none says nothing, and brings no cookies.
pub(crate) fn may_be_foreign(head: &Head<'_>) -> bool {
    let is_said = head.field("sec-fetch-site").or_else(|| head.field("origin")).is_some();
    is_foreign(head) || !is_said && head.field("cookie").is_some()
}

/// Whether a browser says that a page of another site asks (Fetch Metadata section 2.1), or names it (RFC 6454).
pub(crate) fn is_foreign(head: &Head<'_>) -> bool {
    if let Some(site) = head.field("sec-fetch-site") {
        return !matches!(site, b"same-origin" | b"none");
    }
    let origin = head.field("origin");
    origin.is_some_and(|origin| !str::from_utf8(origin).is_ok_and(|origin| is_own(head, origin)))
}

/// Whether an origin, or an address with one, is that of the request's host. `null` is nobody's own.
fn is_own(head: &Head<'_>, address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once("://") else { return false };
    let host = rest.split('/').next().unwrap_or_default();
    matches!(scheme, "http" | "https") && Some(host) == head.authority()
}

/// The page of this site that a request comes from, as its `Referer` names it (RFC 9110 section 10.1.3).
pub(crate) fn page_before<'h>(head: &Head<'h>) -> Option<&'h str> {
    head.field_text("referer").filter(|address| is_own(head, address))
}

/// Path and query of an address with an origin, without what stands behind a `#`.
pub(crate) fn target_of(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    rest.get(rest.find('/')?..)?.split('#').next()
}

/// Whether an address is a path of this site, perhaps with more behind it, for any browser: those take `\\` for `/`, so that
/// a host may stand behind two of them, and do not see tabs and ends of lines.
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
    fn what_a_browser_says_of_the_page_comes_first() {
        check("Sec-Fetch-Site: same-origin\r\nOrigin: http://b\r\n", (false, false), None);
        check("Sec-Fetch-Site: none\r\nCookie: a=b\r\n", (false, false), None);
        for site in ["same-site", "cross-site", "Same-Origin", ""] {
            let fields = format!("Sec-Fetch-Site: {site}\r\nOrigin: http://a.example:81\r\n");
            check(&fields, (true, true), None);
        }
    }

    #[test]
    fn an_origin_is_own_if_it_is_the_host_to_the_letter() {
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
    fn whoever_says_nothing_and_has_no_cookies_is_no_browser() {
        check("", (false, false), None);
        check("Cookie: a=b\r\n", (false, true), None);
    }

    #[test]
    fn a_path_leads_to_no_other_site() {
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
    fn the_page_before_is_one_of_this_site() {
        let own = "http://a.example:81//b/c?d";
        check(&format!("Referer: {own}\r\n"), (false, false), Some(own));
        for other in
            ["http://b/", "http://a.example:81.b/", "http://a.example:81@b/", "/a", "data:a"]
        {
            check(&format!("Referer: {other}\r\n"), (false, false), None);
        }
    }
}
