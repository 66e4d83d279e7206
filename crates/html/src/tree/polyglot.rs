//! Decides how a tree is spelled as markup that HTML and XML read alike, exactly as `html!` spells it.

use bine_vocabulary::{drops_line_feed, is_raw_text, is_void};

use super::{Below, Element, Node, TreeWriter};
use crate::Writer;

/// Writes HTML, in the spelling that XML reads too. It overrides nothing: what it does is what a
/// [`TreeWriter`] does by itself, for writers that override a method and sometimes want what it did.
#[derive(Clone, Copy, Default, Debug)]
pub struct Polyglot;

impl TreeWriter for Polyglot {}

pub(super) fn open(element: &Element, to: &mut Writer<'_>) -> Below {
    let name = element.name();
    to.constant("<");
    to.unescaped(name);
    for (name, value) in element.attributes() {
        to.constant(" ");
        to.unescaped(name);
        to.constant("=\"");
        to.text(value);
        to.constant("\"");
    }
    if is_void(name) {
        to.constant(" />");
        return Below::Skip;
    }
    to.constant(">");
    if is_raw_text(name) {
        for node in element.children() {
            // Whatever else stands there would become a part of the program.
            if let Node::Raw(code) = node {
                to.unescaped(code.as_str());
            }
        }
        close(element, to);
        return Below::Skip;
    }
    if drops_line_feed(name) && may_begin_with_line_feed(element.children()) {
        to.constant("\n");
    }
    Below::Visit
}

fn may_begin_with_line_feed(children: &[Node]) -> bool {
    match children.first() {
        Some(Node::Text(text)) => text.starts_with('\n'),
        Some(Node::Raw(markup)) => markup.as_str().starts_with('\n'),
        Some(Node::Own(_)) => true,
        _ => false,
    }
}

pub(super) fn close(element: &Element, to: &mut Writer<'_>) {
    if element.name() == "head" {
        to.end_head();
    }
    to.constant("</");
    to.unescaped(element.name());
    to.constant(">");
}

/// HTML knows no escape in a comment, so what would end it is pulled apart (HTML 13.1.6; XML 1.0, section 2.5). So is
/// `</`: in `<title>` and its like a comment is text, which an end tag ends.
pub(super) fn comment(text: &str, to: &mut Writer<'_>) {
    to.constant("<!--");
    let mut last = '-';
    for char in text.chars() {
        if matches!((last, char), ('-', '-' | '>') | ('<', '/')) {
            to.constant(" ");
        }
        to.unescaped(char.encode_utf8(&mut [0; 4]));
        last = char;
    }
    to.constant(if last == '-' { " -->" } else { "-->" });
}
