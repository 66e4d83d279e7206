//! Decides what a peer makes of pages: whether it reads them, and whether it would rather have XHTML than HTML.

const HTML: &str = "text/html";
const XHTML: &str = "application/xhtml+xml";
const JSON: &str = "application/json";

/// What a peer says of pages in its field `Accept` (RFC 9110 section 12.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taste {
    /// It names a language of pages. A star alone, as curl sends it, names nothing.
    pub(crate) reads_pages: bool,
    /// It names XHTML and gives it a greater weight than HTML; browsers name both and like them alike.
    pub(crate) prefers_xhtml: bool,
    /// It names JSON, and gives it a greater weight than any language of pages.
    pub(crate) prefers_json: bool,
}

impl Taste {
    pub(crate) fn of(accept: Option<&str>) -> Self {
        let accept = accept.unwrap_or_default();
        // As all browsers say it: nothing outweighs that.
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

/// Whether a peer that may have pages or JSON would rather have pages, as browsers that show what they get say it. One
/// that does not care gets JSON.
pub(crate) fn prefers_pages(accept: Option<&str>) -> bool {
    // As browsers and programs say it that fetch something.
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
    let weight = |wanted: &str| weight_of(accept, wanted);
    let html = weight(HTML).or_else(|| weight("text/*")).or_else(|| weight("*/*"));
    weight(XHTML) > html.or(Some(0))
}

/// The greatest weight of a media range in a field `Accept`; `None`: it is not named.
fn weight_of(accept: &str, wanted: &str) -> Option<u16> {
    let ranges = accept.split(',').filter_map(|range| {
        let mut parts = range.split(';');
        let name = parts.next()?.trim();
        if !name.eq_ignore_ascii_case(wanted) {
            return None;
        }
        weight(parts)
    });
    ranges.max()
}

/// The weight among the parameters of a media range, in thousandths; `None` if it is none.
fn weight<'a>(mut parameters: impl Iterator<Item = &'a str>) -> Option<u16> {
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
        let taste = Taste { reads_pages, prefers_xhtml, prefers_json: false };
        assert_eq!(Taste::of(Some(accept)), taste, "{accept}");
    }

    #[test]
    fn a_browser_gets_html() {
        check("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true, false);
        check("application/xhtml+xml, text/html", true, false);
        check("text/html", true, false);
        check("*/*", false, false);
        check("image/png", false, false);
        check("", false, false);
    }

    #[test]
    fn who_prefers_xhtml_gets_it() {
        check("application/xhtml+xml", true, true);
        check("text/html;q=0.9, application/xhtml+xml", true, true);
        check("application/xhtml+xml;charset=utf-8 ; q=0.5,text/html;Q=0.499", true, true);
        check("application/xhtml+xml, */*;q=0.9", true, true);
        check("application/xhtml+xml;q=0.2, text/html;q=0", true, true);
        check("text/*;q=0.1, */*, application/xhtml+xml;q=0.2", true, true);
    }

    #[test]
    fn who_likes_both_alike_or_says_it_wrongly_gets_html() {
        check("application/xhtml+xml, */*", true, false);
        check("application/xhtml+xml;q=0.2, text/*;q=0.2", true, false);
        check("application/xhtml+xml;q=0", true, false);
        check("application/xhtml+xml;q=1.5", true, false);
        check("application/xhtml+xml;q=0.1234", true, false);
        check("application/xhtml+xml;q=", true, false);
        check("xapplication/xhtml+xml", true, false);
    }

    #[test]
    fn a_program_that_names_json_is_told_in_json() {
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
            assert_eq!(Taste::of(Some(accept)).prefers_json, prefers, "{accept}");
        }
    }

    #[test]
    fn a_service_answers_by_a_page_who_would_rather_have_one() {
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
        fn nothing_said_there_is_too_odd(accept: String, parts in prop::collection::vec("[;,q=.0-9 ]{0,4}", 0..6)) {
            let _ = Taste::of(Some(&accept));
            let _ = Taste::of(Some(&parts.join("application/xhtml+xml")));
        }

        #[test]
        fn the_greater_weight_wins(xhtml in 0_u16..=1000, html in 0_u16..=1000) {
            let decimal = |weight| format!("{}.{:03}", weight / 1000, weight % 1000);
            let accept = format!("application/xhtml+xml;q={}, text/html;q={}", decimal(xhtml), decimal(html));
            prop_assert_eq!(Taste::of(Some(&accept)).prefers_xhtml, xhtml > html);
        }
    }
}
