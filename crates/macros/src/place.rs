//! Places of nodes and kinds of markup, as the checks know them.

pub(crate) use bine_markup::{ContentKind, Place, foreign_root};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::sample::Sample;

    #[track_caller]
    fn check(source: &str, expected: ContentKind) {
        assert_eq!(ContentKind::of(&parse(&Sample::new(source).tokens, &mut Vec::new())), expected);
    }

    #[test]
    fn kind_is_that_of_the_widest_root() {
        check("text", ContentKind::Phrasing);
        check("<b>a</b> {x}", ContentKind::Phrasing);
        check("<b>a</b><p>b</p>", ContentKind::Flow);
        check("{if a { <b>a</b> } else { <p>b</p> }}", ContentKind::Flow);
        check("{match a { _ => { <b>a</b> } }}{for a in b { c }}", ContentKind::Phrasing);
        check("<my-map><p>a</p></my-map><svg></svg>", ContentKind::Phrasing);
    }

    #[test]
    fn transparent_elements_have_the_kind_of_their_content() {
        check("<a href=\"/\">b</a>", ContentKind::Phrasing);
        check("<a href=\"/\"><h2>b</h2>{c}</a>", ContentKind::Flow);
        check("<ins><del><i>a</i></del></ins>", ContentKind::Phrasing);
    }

    #[test]
    fn holes_without_elements_are_flow() {
        check("{a} {b}", ContentKind::Flow);
        check("{for a in b { {a} }}", ContentKind::Flow);
        check("{let a = b;} {a}", ContentKind::Flow);
        check("{let a = b;}<li>{a}</li>", ContentKind::Parts);
        check("<a href=\"/\">{b}</a>", ContentKind::Phrasing);
    }

    #[test]
    fn content_of_certain_parents_is_parts() {
        check("<li>a</li>{b}", ContentKind::Parts);
        check(
            "<title>a</title><meta charset=\"utf-8\"><script src=\"a\"></script>",
            ContentKind::Parts,
        );
        check("{for a in b { <tr></tr> }}", ContentKind::Parts);
        check("<head></head><body></body>", ContentKind::Parts);
    }

    #[test]
    fn scripts_are_allowed_everywhere() {
        check("<script src=\"a\"></script>", ContentKind::ScriptSupporting);
        check("<link rel=\"stylesheet\" href=\"a\">", ContentKind::ScriptSupporting);
        check("<script src=\"a\"></script>{b}", ContentKind::Phrasing);
        check("<link rel=\"icon\" href=\"a\">", ContentKind::Parts);
        check("", ContentKind::ScriptSupporting);
    }

    #[test]
    fn single_html_element_is_a_document() {
        check("<html></html>", ContentKind::Document);
        check("<!DOCTYPE html>\n<html><body>{a}</body></html>", ContentKind::Document);
        check("{let a = b;}\n<html><body>{a}</body></html>", ContentKind::Document);
    }

    #[test]
    fn unclassified_content_is_a_whole_page() {
        check("<!DOCTYPE html>{a}", ContentKind::Whole);
        check("<html></html><p>a</p>", ContentKind::Whole);
        check("<title>a</title><main>b</main>", ContentKind::Whole);
        check("<li>a</li> text", ContentKind::Whole);
    }
}
