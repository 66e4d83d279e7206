//! Decides what a browser makes of an attribute's value, and so which method of the writer fills a hole there.

/// What the value of an attribute is to a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    Text,
    /// It goes there or fetches it.
    Link,
    /// It fetches an image from there.
    Image,
    /// It runs it, draws by it, or reads it as a page.
    Code,
}

/// The attributes that hold one address, whatever their element (HTML, "Attributes"; the last four are of times
/// past). `srcset` is not among them: it only ever fetches images.
const ADDRESSES: [&str; 13] = [
    "action",
    "cite",
    "data",
    "formaction",
    "href",
    "manifest",
    "ping",
    "poster",
    "src",
    "background",
    "codebase",
    "longdesc",
    "profile",
];

/// The elements, of HTML and SVG, whose address is that of an image.
const IMAGES: [&str; 4] = ["feimage", "image", "img", "input"];

impl Context {
    /// The context of an attribute on an element, both in any case.
    pub(crate) fn of(element: &str, attribute: &str) -> Self {
        let (element, attribute) = (element.to_ascii_lowercase(), attribute.to_ascii_lowercase());
        // `xlink:href`, under whatever prefix.
        let local = attribute.rsplit(':').next().unwrap_or_default();
        if is_handler(&attribute) || ["style", "srcdoc"].contains(&local) {
            Self::Code
        } else if !ADDRESSES.contains(&local) {
            Self::Text
        } else if local == "poster" || IMAGES.contains(&element.as_str()) && local != "formaction" {
            Self::Image
        } else {
            Self::Link
        }
    }

    /// The method of the writer that writes such an attribute.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Text => "attribute",
            Self::Link => "link",
            Self::Image => "image",
            Self::Code => "code",
        }
    }
}

/// Whether the attribute is an event handler: `on` and the event, one word. Events are added to HTML, SVG and their
/// relatives every year, so no list of them would stay true. A custom element's `once` is taken for one; `data-once`
/// is not.
fn is_handler(attribute: &str) -> bool {
    attribute.strip_prefix("on").is_some_and(|event| {
        !event.is_empty() && event.bytes().all(|letter| letter.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(element: &str, attributes: &[&str], expected: Context) {
        for attribute in attributes {
            assert_eq!(Context::of(element, attribute), expected, "{element} {attribute}");
        }
    }

    #[test]
    fn addresses_are_known_on_every_element() {
        check("a", &["href", "HREF", "ping", "xlink:href", "x:href"], Context::Link);
        check("form", &["action"], Context::Link);
        check("button", &["formaction"], Context::Link);
        check("input", &["formaction"], Context::Link);
        check("object", &["data", "codebase"], Context::Link);
        check("blockquote", &["cite"], Context::Link);
        check("my-element", &["src", "href"], Context::Link);
        check("iframe", &["src"], Context::Link);
    }

    #[test]
    fn images_are_told_from_what_may_run() {
        check("img", &["src"], Context::Image);
        check("IMG", &["Src"], Context::Image);
        check("image", &["href", "xlink:href"], Context::Image);
        check("video", &["poster"], Context::Image);
        check("video", &["src"], Context::Link);
        check("use", &["href"], Context::Link);
    }

    #[test]
    fn handlers_style_and_srcdoc_are_code_on_every_element() {
        check("p", &["onclick", "OnClick", "onbeforetoggle", "style", "STYLE"], Context::Code);
        check("iframe", &["srcdoc", "onload"], Context::Code);
    }

    #[test]
    fn all_else_is_text() {
        check(
            "p",
            &["title", "class", "data-href", "data-on", "on", "on-click", "one:b"],
            Context::Text,
        );
        check("img", &["alt", "srcset"], Context::Text);
        check("input", &["value", "name"], Context::Text);
    }
}
