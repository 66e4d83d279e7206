//! Decides which method writes an attribute's hole, by what a browser makes of the value.

use bine_vocabulary::Context;

/// The method, of a page's writer and of a tree's builder alike.
pub(crate) fn method(element: &str, attribute: &str) -> &'static str {
    match Context::of(element, attribute) {
        Context::Text => "attribute",
        Context::Link => "link",
        Context::Image => "image",
        Context::Code => "code",
    }
}
