//! Conversion of values to text of a tree: the value is written, then its escapes are decoded.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use bine_vocabulary::Context;

use super::{Node, RawMarkup};
use crate::attribute::IntoUrl;
use crate::{Attribute, CodeValue, Writer};

/// The opening of a temporary attribute, which is removed again.
const OPENING: &str = "\"";

/// The text that a value writes to an attribute of this context; `None` if it omits the attribute.
/// A URL that would run code is replaced.
pub(super) fn of<Kind>(context: Context, value: &(impl IntoUrl<Kind> + ?Sized)) -> Option<String> {
    captured(|writer| match context {
        Context::Link => writer.link(OPENING, value),
        Context::Image => writer.image(OPENING, value),
        Context::Text | Context::Code => value.write(Attribute::text(OPENING), writer),
    })
}

/// The same for an attribute that contains code.
pub(super) fn of_code(value: &(impl CodeValue + ?Sized)) -> Option<String> {
    captured(|writer| writer.code(OPENING, value))
}

/// The output as a node: text if it contains no markup, raw markup otherwise.
pub(super) fn node(write: impl FnOnce(&mut Writer<'_>)) -> Option<Node> {
    let markup = written(write);
    if markup.is_empty() {
        return None;
    }
    Some(match text(&markup) {
        Some(text) => Node::Text(text.into_owned().into()),
        // `raw(..)` has already removed the handlers from third-party markup.
        None => Node::Raw(RawMarkup::of_source(markup.into())),
    })
}

pub(super) fn written(write: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out));
    String::from_utf8(out).expect("a writer produces UTF-8")
}

fn captured(write: impl FnOnce(&mut Writer<'_>)) -> Option<String> {
    let written = written(write);
    let value = written.strip_prefix(OPENING)?.strip_suffix('"')?;
    // A custom value may write several attributes. Markup that is not plain text is kept as
    // written.
    Some(text(value).map_or_else(|| value.into(), Cow::into_owned))
}

/// The character references that escaping produces.
const REFERENCES: [(&str, char); 5] =
    [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&#39;", '\'')];

/// Decodes output that consists of text only; `None` if it contains markup or other references.
fn text(markup: &str) -> Option<Cow<'_, str>> {
    if markup.contains(['<', '>', '"', '\'']) {
        return None;
    }
    if !markup.contains('&') {
        return Some(Cow::Borrowed(markup));
    }
    let mut text = String::with_capacity(markup.len());
    let mut rest = markup;
    while let Some(place) = rest.find('&') {
        let (clean, reference) = rest.split_at(place);
        let (spelled, char) =
            REFERENCES.iter().find(|(spelled, _)| reference.starts_with(spelled))?;
        text.push_str(clean);
        text.push(*char);
        rest = &reference[spelled.len()..];
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::raw;

    use super::*;

    proptest! {
        #[test]
        fn decodes_escaped_text(plain: String) {
            let written = written(|writer| writer.text(&plain));
            let read = text(&written);
            prop_assert_eq!(read.as_deref(), Some(&*plain));
            prop_assert_eq!(of(Context::Text, &*plain), Some(plain));
        }

        #[test]
        fn written_markup_round_trips(markup in "[a&<;ltgmpquo#39\"']{0,12}") {
            let node = node(|writer| writer.unescaped(&markup));
            let again = written(|writer| match &node {
                Some(Node::Text(text)) => writer.text(text),
                Some(Node::Raw(markup)) => writer.unescaped(markup.as_str()),
                _ => {}
            });
            prop_assert_eq!(again, markup);
        }
    }

    #[test]
    fn omits_absent_attributes() {
        assert_eq!(of(Context::Text, &None::<&str>), None);
        assert_eq!(of(Context::Text, &true).as_deref(), Some(""));
        assert_eq!(of(Context::Link, &"javascript:x").as_deref(), Some("about:invalid#refused"));
        assert_eq!(of(Context::Link, &raw("javascript:x")).as_deref(), Some("javascript:x"));
        assert_eq!(of_code(&raw("go(\"a\")")).as_deref(), Some("go(\"a\")"));
    }
}
