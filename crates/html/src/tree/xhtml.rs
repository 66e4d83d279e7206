//! [`Xhtml`]: serialization as well-formed XML, whatever text and names the tree contains.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use bine_vocabulary::{is_raw_text, is_void};

use super::{Element, Node, Subtree, TreeWriter, markup, name, value};
use crate::Writer;
use crate::xml::clean;

/// Writes XHTML: well-formed XML with the namespaces that an HTML parser gives to HTML, SVG and
/// MathML.
///
/// Characters that XML does not allow (U+0000 and most control characters) become U+FFFD,
/// attributes whose name is not valid XML (`@click`) are omitted, and the content of `<script>` and
/// `<style>` is escaped, as XML requires. Markup from [`raw`](crate::raw) is written unchanged: its
/// author vouches that it is well-formed XML.
#[derive(Clone, Default, Debug)]
pub struct Xhtml {
    /// The languages of the open elements.
    open: Vec<Language>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Language {
    Html,
    Svg,
    /// Inside an SVG element that contains HTML.
    HtmlInSvg,
    MathMl,
}

impl TreeWriter for Xhtml {
    fn open(&mut self, element: &Element, to: &mut Writer<'_>) -> Subtree {
        let parent = self.open.last().copied().unwrap_or(Language::Html);
        let language = Language::of(element.name(), parent);
        to.constant("<");
        to.unescaped(&spelled(element.name(), language));
        if element.attribute("xmlns").is_none()
            && (language.namespace() != parent.namespace() || element.name() == "html")
        {
            to.constant(" xmlns=\"");
            to.constant(language.namespace());
            to.constant("\"");
        }
        attributes(element, language, to);
        if is_void(element.name()) && language == Language::Html {
            to.constant(" />");
            return Subtree::Skip;
        }
        to.constant(">");
        if is_raw_text(element.name()) {
            for node in element.children() {
                if let Node::Raw(code) = node {
                    text(code.as_str(), to);
                }
            }
            close(element, language, to);
            return Subtree::Skip;
        }
        self.open.push(if element.name() == "foreignObject" {
            Language::HtmlInSvg
        } else {
            language
        });
        Subtree::Visit
    }

    fn close(&mut self, element: &Element, to: &mut Writer<'_>) {
        let inside = self.open.pop().unwrap_or(Language::Html);
        let language = if element.name() == "foreignObject" { Language::Svg } else { inside };
        close(element, language, to);
    }

    fn text(&mut self, plain: &str, to: &mut Writer<'_>) {
        text(plain, to);
    }

    fn comment(&mut self, text: &str, to: &mut Writer<'_>) {
        let mut comment = value::written(|writer| markup::comment(text, writer)).into_bytes();
        clean(&mut comment, 0, false);
        to.bytes(&comment);
    }
}

impl Language {
    fn of(name: &str, parent: Self) -> Self {
        match (name, parent) {
            ("svg", _) => Self::Svg,
            ("math", _) => Self::MathMl,
            (_, Self::HtmlInSvg) => Self::Html,
            _ => parent,
        }
    }

    /// The namespace that children inherit by default.
    const fn namespace(self) -> &'static str {
        match self {
            Self::Html => "http://www.w3.org/1999/xhtml",
            Self::Svg | Self::HtmlInSvg => "http://www.w3.org/2000/svg",
            Self::MathMl => "http://www.w3.org/1998/Math/MathML",
        }
    }
}

fn close(element: &Element, language: Language, to: &mut Writer<'_>) {
    if element.name() == "head" {
        to.end_head();
    }
    to.constant("</");
    to.unescaped(&spelled(element.name(), language));
    to.constant(">");
}

fn attributes(element: &Element, language: Language, to: &mut Writer<'_>) {
    let is_linked = element.attributes().any(|(name, _)| name.starts_with("xlink:"));
    if is_linked && element.attribute("xmlns:xlink").is_none() {
        to.constant(" xmlns:xlink=\"http://www.w3.org/1999/xlink\"");
    }
    for (name, value) in element.attributes() {
        let has_prefix = name.split_once(':').is_some_and(|(prefix, local)| {
            !["xml", "xmlns", "xlink"].contains(&prefix)
                || !name::is_xml(local)
                || local.contains(':')
        });
        if has_prefix || !name::is_xml(name) {
            continue;
        }
        to.constant(" ");
        to.unescaped(&spelled(name, language));
        to.constant("=\"");
        escape(value, true, to);
        to.constant("\"");
    }
}

/// The spelling of a name in XML: HTML names in lowercase, and no undeclared prefix.
fn spelled(name: &str, language: Language) -> Cow<'_, str> {
    let is_declared = ["xml:", "xmlns:", "xlink:"].iter().any(|prefix| name.starts_with(prefix));
    let is_foreign =
        language != Language::Html || !name.contains(|char: char| char.is_ascii_uppercase());
    if is_foreign && (is_declared || !name.contains(':')) {
        return Cow::Borrowed(name);
    }
    let name = if is_foreign { name.into() } else { name.to_ascii_lowercase() };
    Cow::Owned(if is_declared { name } else { name.replace(':', "_") })
}

/// Writes text escaped for XML, with invalid characters replaced.
pub(super) fn text(text: &str, to: &mut Writer<'_>) {
    escape(text, false, to);
}

fn escape(text: &str, in_value: bool, to: &mut Writer<'_>) {
    // Most text needs only escaping; control characters and U+FFFE are rare.
    if !text.bytes().any(|byte| byte < b' ' || byte == 0xef) {
        return to.text(text);
    }
    let mut escaped = value::written(|writer| writer.text(text)).into_bytes();
    clean(&mut escaped, 0, in_value);
    to.bytes(&escaped);
}

#[cfg(test)]
mod tests {
    use super::super::Tree;
    use super::*;
    use crate::raw;

    fn element(name: &'static str, children: impl IntoIterator<Item = Node>) -> Element {
        let mut element = Element::new(name).unwrap();
        element.children_mut().extend(children);
        element
    }

    #[track_caller]
    fn check(node: impl Into<Tree>, expected: &str) {
        assert_eq!(node.into().to_string_with(Xhtml::default()), expected);
    }

    #[test]
    fn declares_the_namespaces_of_html() {
        let inside = element("foreignObject", [element("P", [element("br", []).into()]).into()]);
        let mut link = element("a", []);
        link.set_attribute("xlink:href", "/").unwrap();
        let drawing = element("svg", [link.into(), inside.into()]);
        check(
            element("html", [element("body", [drawing.into()]).into()]),
            "<html xmlns=\"http://www.w3.org/1999/xhtml\"><body><svg xmlns=\"http://www.w3.org/2000/svg\">\
             <a xmlns:xlink=\"http://www.w3.org/1999/xlink\" xlink:href=\"/\"></a><foreignObject>\
             <p xmlns=\"http://www.w3.org/1999/xhtml\"><br /></p></foreignObject></svg></body></html>",
        );
    }

    #[test]
    fn xhtml_is_well_formed_for_any_input() {
        let mut odd = element("x:y", ["a\0b\rc".into()]);
        odd.set_attribute("@click", "x").unwrap();
        odd.set_attribute("a:b", "x").unwrap();
        odd.set_attribute("title", "a\tb\nc\u{ffff}").unwrap();
        check(odd, "<x_y title=\"a&#9;b&#10;c\u{fffd}\">a\u{fffd}b&#13;c</x_y>");
        check(
            element("script", [raw("a < b && c").into()]),
            "<script>a &lt; b &amp;&amp; c</script>",
        );
        check(Node::comment("a\0--"), "<!--a\u{fffd}- - -->");
    }
}
