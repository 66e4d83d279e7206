//! Differences between HTML and XML: names and namespaces (HTML 2.1.3 and 14.1).

use crate::place::{Place, foreign_root};
use crate::tree::Element;

const HTML: &str = "http://www.w3.org/1999/xhtml";
const SVG: &str = "http://www.w3.org/2000/svg";
const MATHML: &str = "http://www.w3.org/1998/Math/MathML";
const XLINK: &str = "http://www.w3.org/1999/xlink";

/// The attributes that XML requires for the namespaces that HTML implies by the element's name.
pub(crate) fn namespaces(element: &Element, place: &Place<'_>) -> String {
    let is_given = |name: &str| element.attributes.iter().any(|given| given.name == name);
    let namespace = match foreign_root(element) {
        Some(foreign) => Some(if foreign.root == "svg" { SVG } else { MATHML }),
        None if place.is_html_in_foreign() => Some(HTML),
        None => (place.foreign.is_none() && element.name == "html").then_some(HTML),
    };
    let mut attributes = match namespace {
        Some(namespace) if !is_given("xmlns") => format!(" xmlns=\"{namespace}\""),
        _ => String::new(),
    };
    let is_linked = element.attributes.iter().any(|given| given.name.starts_with("xlink:"));
    if is_linked && !is_given("xmlns:xlink") {
        attributes = format!("{attributes} xmlns:xlink=\"{XLINK}\"");
    }
    attributes
}

/// Whether XML allows the attribute's name, with a known prefix (Namespaces in XML, section 4).
pub(crate) fn is_xml_attribute(name: &str) -> bool {
    let local = match name.split_once(':') {
        Some(("xml" | "xmlns" | "xlink", local)) => local,
        Some(_) => return false,
        None => name,
    };
    let is_letter = |letter: char| letter.is_alphabetic() || letter == '_';
    local.starts_with(is_letter)
        && local
            .chars()
            .all(|letter| is_letter(letter) || letter.is_numeric() || "-.".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_attributes_have_letters_and_known_prefixes() {
        for name in ["class", "data-x.1", "_a", "xml:lang", "xlink:href", "xmlns:a", "\u{e4}"] {
            assert!(is_xml_attribute(name), "{name}");
        }
        for name in ["@click", ":title", "hx-on:click", "xml:a:b", "1a", "-a", "a b", "", "[a]"] {
            assert!(!is_xml_attribute(name), "{name}");
        }
    }
}
