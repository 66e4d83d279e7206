//! The security context of an attribute's value: how a browser uses it, and so which values are
//! safe.

/// How a browser uses the value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Words or a number. Safe once escaped.
    Text,
    /// A URL that the browser navigates to or fetches.
    Link,
    /// A URL from which the browser fetches an image.
    Image,
    /// The browser runs the value, applies it as style, or parses it as a page.
    Code,
}

/// The attributes that contain one URL, on any element (HTML, "Attributes"; the last four are
/// obsolete). `srcset` is not included, because it only fetches images.
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

/// The HTML and SVG elements whose URL is that of an image.
const IMAGES: [&str; 4] = ["feimage", "image", "img", "input"];

impl Context {
    /// Returns the context of an attribute on an element. Both names are case-insensitive.
    pub fn of(element: &str, attribute: &str) -> Self {
        // `xlink:href` with any prefix.
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

/// Returns whether an element, in any case, has neither content nor an end tag (HTML 13.1.2).
pub fn is_void(element: &str) -> bool {
    // A search of the table would take longer than writing the tag.
    const VOID: [&str; 15] = [
        "area", "base", "br", "col", "embed", "hr", "img", "input", "keygen", "link", "meta",
        "param", "source", "track", "wbr",
    ];
    is_among(element, &VOID)
}

/// Returns whether a browser reads the content of this element, in any case, without decoding
/// escapes, and then executes or applies it.
pub fn is_raw_text(element: &str) -> bool {
    is_among(element, &["script", "style"])
}

/// Returns whether a browser drops a leading line feed in this element, in any case (HTML
/// 13.2.6.4.7). To keep one, write it twice.
pub fn drops_line_feed(element: &str) -> bool {
    is_among(element, &["listing", "pre", "textarea"])
}

/// Returns whether the attribute is an event handler: `on` followed by the event, as one word.
/// HTML, SVG and related standards add events every year, so a list would become outdated. `once`
/// on a custom element counts as a handler; `data-once` does not.
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
    fn recognizes_urls_on_every_element() {
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
    fn distinguishes_images_from_other_urls() {
        check("img", &["src"], Context::Image);
        check("IMG", &["Src"], Context::Image);
        check("image", &["href", "xlink:href"], Context::Image);
        check("video", &["poster"], Context::Image);
        check("video", &["src"], Context::Link);
        check("use", &["href"], Context::Link);
    }

    #[test]
    fn treats_handlers_style_and_srcdoc_as_code() {
        check("p", &["onclick", "OnClick", "onbeforetoggle", "style", "STYLE"], Context::Code);
        check("iframe", &["srcdoc", "onload"], Context::Code);
    }

    #[test]
    fn treats_other_attributes_as_text() {
        check(
            "p",
            &["title", "class", "data-href", "data-on", "on", "on-click", "one:b"],
            Context::Text,
        );
        check("img", &["alt", "srcset"], Context::Text);
        check("input", &["value", "name"], Context::Text);
    }

    #[test]
    fn void_elements_match_the_table() {
        for element in crate::elements() {
            assert_eq!(is_void(element.name), element.void, "{}", element.name);
        }
        assert!(is_void("BR") && is_raw_text("Script") && !is_void("p"));
    }
}
