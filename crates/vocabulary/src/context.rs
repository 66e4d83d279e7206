//! Decides what a browser makes of an attribute's value, and so what may be put there.

/// What the value of an attribute is to a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Words, or a number: harmless once it is escaped.
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
    pub fn of(element: &str, attribute: &str) -> Self {
        // `xlink:href`, under whatever prefix.
        let local = attribute.rsplit(':').next().unwrap_or_default();
        if is_handler(attribute) || is_among(local, &["style", "srcdoc"]) {
            Self::Code
        } else if !is_among(local, &ADDRESSES) {
            Self::Text
        } else if is_among(local, &["poster"])
            || is_among(element, &IMAGES) && !is_among(local, &["formaction"])
        {
            Self::Image
        } else {
            Self::Link
        }
    }
}

/// Whether an element of that name, in any case, has neither content nor an end tag (HTML 13.1.2).
pub fn is_void(element: &str) -> bool {
    // A search of the table would take longer than the tag takes to write.
    const VOID: [&str; 15] = [
        "area", "base", "br", "col", "embed", "hr", "img", "input", "keygen", "link", "meta",
        "param", "source", "track", "wbr",
    ];
    is_among(element, &VOID)
}

/// Whether a browser reads the content of such an element, in any case, without undoing escapes, and acts upon it.
pub fn is_raw_text(element: &str) -> bool {
    is_among(element, &["script", "style"])
}

/// Whether a browser drops a line feed that comes first in such an element, in any case (HTML 13.2.6.4.7), so that one
/// which is meant has to come twice.
pub fn drops_line_feed(element: &str) -> bool {
    is_among(element, &["listing", "pre", "textarea"])
}

/// Whether the attribute is an event handler: `on` and the event, one word. Events are added to HTML, SVG and their
/// relatives every year, so no list of them would stay true. A custom element's `once` is taken for one; `data-once`
/// is not.
fn is_handler(attribute: &str) -> bool {
    attribute.as_bytes().split_at_checked(2).is_some_and(|(on, event)| {
        on.eq_ignore_ascii_case(b"on")
            && !event.is_empty()
            && event.iter().all(u8::is_ascii_alphanumeric)
    })
}

fn is_among(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
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

    #[test]
    fn void_is_what_the_table_calls_so() {
        for element in crate::elements() {
            assert_eq!(is_void(element.name), element.void, "{}", element.name);
        }
        assert!(is_void("BR") && is_raw_text("Script") && !is_void("p"));
    }
}
