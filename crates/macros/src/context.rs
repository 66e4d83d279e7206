//! Selection of the method that writes an attribute's hole, by how a browser uses the value.

use bine_vocabulary::Context;

/// The name of the method. The writer of a page and the builder of a tree share these names.
pub(crate) fn method(element: &str, attribute: &str) -> &'static str {
    match Context::of(element, attribute) {
        Context::Text => "attribute",
        Context::Link => "link",
        Context::Image => "image",
        Context::Code => "code",
    }
}
