//! [`raw`]: unescaped text, under a name that a reader can search for.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::Writer;
use crate::render::Render;

/// Text that is already markup, or the content of `<script>` or `<style>`. It is written unchanged,
/// except that the attribute `data-on` is disabled: third-party markup must not define handlers.
///
/// In an attribute it is a URL that is not checked, or code; there its quotes are escaped.
#[derive(Clone, Copy, Debug)]
pub struct Raw<T>(pub T);

/// Marks text as trusted markup, which is written unchanged. The caller vouches for every byte of
/// it.
///
/// An attribute `data-on` in it has no effect: only markup in the program's source defines
/// handlers.
pub fn raw<T: AsRef<str>>(text: T) -> Raw<T> {
    Raw(text)
}

impl<T: AsRef<str>> Render for Raw<T> {
    #[inline]
    fn render(&self, writer: &mut Writer<'_>) {
        writer.unescaped(&disarmed(self.0.as_ref()));
    }
}

/// Replaces the hyphen of `data-on`. In text and in values the parser decodes it to a hyphen. In an
/// attribute's name it decodes no reference, so the attribute has another name (HTML section
/// 13.2.5.33). In XML such an attribute is an error.
const HYPHEN: &str = "&#45;";

/// `markup` without the attribute `data-on`. A name cut off at either end of `markup` counts too,
/// because neighboring text may complete it.
pub(crate) fn disarmed(markup: &str) -> Cow<'_, str> {
    let bytes = markup.as_bytes();
    let (mut out, mut done) = (String::new(), 0);
    for (place, _) in markup.match_indices('-') {
        if ends_with_data(&bytes[..place]) && begins_with_on(&bytes[place + 1..]) {
            out.push_str(&markup[done..place]);
            out.push_str(HYPHEN);
            done = place + 1;
        }
    }
    if done == 0 {
        return Cow::Borrowed(markup);
    }
    out.push_str(&markup[done..]);
    Cow::Owned(out)
}

/// Whether `before` may end in `data` at the start of an attribute's name.
fn ends_with_data(before: &[u8]) -> bool {
    let Some(start) = before.len().checked_sub(DATA.len()) else {
        return DATA[DATA.len() - before.len()..].eq_ignore_ascii_case(before);
    };
    // A name follows white space, a slash, or the quote that ends a value.
    let may_precede = |byte: &u8| is_space(*byte) || matches!(byte, b'/' | b'"' | b'\'');
    before[start..].eq_ignore_ascii_case(DATA) && before[..start].last().is_none_or(may_precede)
}

/// Whether `after` may start with `on` at the end of an attribute's name.
fn begins_with_on(after: &[u8]) -> bool {
    if after.len() < ON.len() {
        return ON[..after.len()].eq_ignore_ascii_case(after);
    }
    let ends_name = |byte: &u8| is_space(*byte) || matches!(byte, b'/' | b'>' | b'=');
    after[..ON.len()].eq_ignore_ascii_case(ON) && after.get(ON.len()).is_none_or(ends_name)
}

const DATA: &[u8] = b"data";
const ON: &[u8] = b"on";

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r')
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;
    use alloc::vec::Vec;

    use html5ever::tendril::TendrilSink as _;
    use html5ever::{Attribute, ParseOpts};
    use markup5ever_rcdom::{NodeData, RcDom};
    use proptest::collection;
    use proptest::prelude::{ProptestConfig, Strategy, prop_assert_eq, proptest};
    use proptest::sample::select;

    use super::*;

    #[test]
    fn removes_handlers_from_markup() {
        for (markup, expected) in [
            ("<p data-on=\"click: x\">", "<p data&#45;on=\"click: x\">"),
            ("<p\nDATA-On\t= x>", "<p\nDATA&#45;On\t= x>"),
            ("<p a='b'data-on>", "<p a='b'data&#45;on>"),
            ("<p/data-on/>", "<p/data&#45;on/>"),
            ("data-on=x>", "data&#45;on=x>"),
            // The parser decodes it to a hyphen.
            ("<p>the attribute data-on does", "<p>the attribute data&#45;on does"),
        ] {
            assert_eq!(disarmed(markup), expected);
        }
    }

    #[test]
    fn keeps_other_markup_unchanged() {
        for markup in [
            "",
            "a-b --> c",
            "<p data-one data-on-x xdata-on data-o>",
            "<script>document.querySelector('[data-on]').getAttribute(\"data-on\")</script>",
            "<p data-name=data-only>",
            "- on -- the data -",
        ] {
            assert!(matches!(disarmed(markup), Cow::Borrowed(same) if same == markup), "{markup}");
        }
    }

    fn pieces_of_markup() -> impl Strategy<Value = Vec<String>> {
        let words = [
            "data",
            "-",
            "on",
            "ON",
            "d",
            "ata",
            "o",
            "n",
            " ",
            "=",
            "<p ",
            "data-on=x",
            "<svg ",
            "<!--",
            "\t",
            ">",
            "\"",
            "'",
            "/",
            "x",
        ];
        let piece = collection::vec(select(words.to_vec()), 0..12).prop_map(|words| words.concat());
        collection::vec(piece, 1..4)
    }

    /// The number of attributes `data-on` that a browser finds in `markup`.
    fn handlers(markup: &str) -> usize {
        let parsed = html5ever::parse_document(RcDom::default(), ParseOpts::default()).one(markup);
        let (mut left, mut found) = (vec![parsed.document.clone()], 0);
        while let Some(node) = left.pop() {
            if let NodeData::Element { attrs, .. } = &node.data {
                let is_handler = |attribute: &&Attribute| &*attribute.name.local == "data-on";
                found += attrs.borrow().iter().filter(is_handler).count();
            }
            left.extend(node.children.borrow().iter().cloned());
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Markup may be cut at any place.
        #[test]
        fn removes_handlers_at_any_cut(pieces in pieces_of_markup()) {
            let markup: String = pieces.iter().map(|piece| disarmed(piece)).collect();
            prop_assert_eq!(handlers(&markup), 0, "{}", markup);
        }
    }

    #[test]
    fn parser_finds_handlers_in_unchanged_markup() {
        assert_eq!(handlers("<p Data-On=x><p/data-on>"), 2);
    }
}
