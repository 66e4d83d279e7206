//! The client's preferences among HTML, XHTML and JSON.

const HTML: &str = "text/html";
const XHTML: &str = "application/xhtml+xml";
const JSON: &str = "application/json";

/// The preferences that the `Accept` field of a request states (RFC 9110 section 12.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AcceptPreferences {
    /// The field names HTML or XHTML. A star alone, as curl sends it, does not count.
    pub(crate) reads_pages: bool,
    /// The field gives XHTML a greater weight than HTML. Browsers name both with equal weight.
    pub(crate) prefers_xhtml: bool,
    /// The field gives JSON a greater weight than HTML and XHTML.
    pub(crate) prefers_json: bool,
}

impl AcceptPreferences {
    pub(crate) fn of(accept: Option<&str>) -> Self {
        let accept = accept.unwrap_or_default();
        // All browsers begin with this value; no later range can outweigh it.
        if accept.starts_with("text/html,") {
            return Self { reads_pages: true, prefers_xhtml: false, prefers_json: false };
        }
        let names_xhtml = accept.contains(XHTML);
        Self {
            reads_pages: names_xhtml || accept.contains(HTML),
            prefers_xhtml: names_xhtml && prefers_xhtml(accept),
            prefers_json: accept.contains("json") && prefers_json(accept),
        }
    }
}

/// Whether a client that can have a page or JSON prefers the page, as browsers state when they
/// navigate. Without a preference the answer is no.
pub(crate) fn prefers_pages(accept: Option<&str>) -> bool {
    // Browsers and programs send this when they fetch data.
    let Some(accept) = accept.filter(|accept| *accept != "*/*") else { return false };
    let weight = |kinds: &[&str]| kinds.iter().find_map(|kind| weight_of(accept, kind));
    let html = weight(&[HTML, "text/*", "*/*"]).max(weight_of(accept, XHTML));
    html > weight(&[JSON, "application/*", "*/*"])
}

fn prefers_json(accept: &str) -> bool {
    let json = weight_of(accept, JSON).max(weight_of(accept, "application/problem+json"));
    json > weight_of(accept, HTML).max(weight_of(accept, XHTML)).or(Some(0))
}

fn prefers_xhtml(accept: &str) -> bool {
    let weight = |media_type: &str| weight_of(accept, media_type);
    let html = weight(HTML).or_else(|| weight("text/*")).or_else(|| weight("*/*"));
    weight(XHTML) > html.or(Some(0))
}

/// The greatest weight of a media range in an `Accept` field, or `None` if it does not occur.
fn weight_of(accept: &str, media_type: &str) -> Option<u16> {
    let ranges = accept.split(',').filter_map(|range| {
        let mut parts = range.split(';');
        let name = parts.next()?.trim();
        if !name.eq_ignore_ascii_case(media_type) {
            return None;
        }
        weight(parts)
    });
    ranges.max()
}

/// The weight among the parameters of a media range, in thousandths; `None` if it is invalid.
pub(crate) fn weight<'a>(mut parameters: impl Iterator<Item = &'a str>) -> Option<u16> {
    let weight = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
    });
    let Some(weight) = weight else { return Some(1000) };
    let (whole, decimals) = weight.split_once('.').unwrap_or((weight, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digits = decimals.bytes().chain([b'0'; 3]).take(3);
    let thousandths = digits.fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    match (whole, thousandths) {
        ("0", _) => Some(thousandths),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(accept: &str, reads_pages: bool, prefers_xhtml: bool) {
        let preferences = AcceptPreferences { reads_pages, prefers_xhtml, prefers_json: false };
        assert_eq!(AcceptPreferences::of(Some(accept)), preferences, "{accept}");
    }

    #[test]
    fn browsers_get_html() {
        check("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true, false);
        check("application/xhtml+xml, text/html", true, false);
        check("text/html", true, false);
        check("*/*", false, false);
        check("image/png", false, false);
        check("", false, false);
    }

    #[test]
    fn clients_that_prefer_xhtml_get_it() {
        check("application/xhtml+xml", true, true);
        check("text/html;q=0.9, application/xhtml+xml", true, true);
        check("application/xhtml+xml;charset=utf-8 ; q=0.5,text/html;Q=0.499", true, true);
        check("application/xhtml+xml, */*;q=0.9", true, true);
        check("application/xhtml+xml;q=0.2, text/html;q=0", true, true);
        check("text/*;q=0.1, */*, application/xhtml+xml;q=0.2", true, true);
    }

    #[test]
    fn equal_or_invalid_weights_select_html() {
        check("application/xhtml+xml, */*", true, false);
        check("application/xhtml+xml;q=0.2, text/*;q=0.2", true, false);
        check("application/xhtml+xml;q=0", true, false);
        check("application/xhtml+xml;q=1.5", true, false);
        check("application/xhtml+xml;q=0.1234", true, false);
        check("application/xhtml+xml;q=", true, false);
        check("xapplication/xhtml+xml", true, false);
    }

    #[test]
    fn clients_that_prefer_json_get_it() {
        for (accept, prefers) in [
            ("application/json", true),
            ("application/json, text/html;q=0.5", true),
            ("application/problem+json;q=0.1", true),
            ("application/json;q=0.5, text/html", false),
            ("application/json, text/html", false),
            ("application/json;q=0", false),
            ("*/*", false),
            ("application/ld+json", false),
        ] {
            assert_eq!(AcceptPreferences::of(Some(accept)).prefers_json, prefers, "{accept}");
        }
    }

    #[test]
    fn services_send_pages_to_clients_that_prefer_them() {
        for (accept, prefers) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("application/json, text/html;q=0.5", false),
            ("text/html", true),
            ("application/xhtml+xml", true),
            ("text/html, application/json", false),
            ("*/*", false),
            ("", false),
        ] {
            assert_eq!(prefers_pages(Some(accept)), prefers, "{accept}");
        }
    }

    proptest! {
        #[test]
        fn accepts_arbitrary_fields(accept: String, parts in prop::collection::vec("[;,q=.0-9 ]{0,4}", 0..6)) {
            let _ = AcceptPreferences::of(Some(&accept));
            let _ = AcceptPreferences::of(Some(&parts.join("application/xhtml+xml")));
        }

        #[test]
        fn greater_weight_wins(xhtml in 0_u16..=1000, html in 0_u16..=1000) {
            let decimal = |weight| format!("{}.{:03}", weight / 1000, weight % 1000);
            let accept = format!("application/xhtml+xml;q={}, text/html;q={}", decimal(xhtml), decimal(html));
            prop_assert_eq!(AcceptPreferences::of(Some(&accept)).prefers_xhtml, xhtml > html);
        }
    }
}
