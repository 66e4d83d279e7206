//! Tags and comments in a spelling that HTML and XML parsers read alike.

use bine_vocabulary::{drops_line_feed, is_raw_text, is_void};

use super::{Element, Node};
use crate::Writer;

/// Whether the content of an element is visited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subtree {
    /// The children are visited, then [`close`](super::TreeWriter::close) is called.
    Visit,
    /// The children and the call of `close` are skipped.
    Skip,
}

pub(super) fn open(element: &Element, to: &mut Writer<'_>) -> Subtree {
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
        return Subtree::Skip;
    }
    to.constant(">");
    if is_raw_text(name) {
        for node in element.children() {
            // Any other node would become part of the script.
            if let Node::Raw(code) = node {
                to.unescaped(code.as_str());
            }
        }
        close(element, to);
        return Subtree::Skip;
    }
    if drops_line_feed(name) && may_begin_with_line_feed(element.children()) {
        to.constant("\n");
    }
    Subtree::Visit
}

fn may_begin_with_line_feed(children: &[Node]) -> bool {
    match children.first() {
        Some(Node::Text(text)) => text.starts_with('\n'),
        Some(Node::Raw(markup)) => markup.as_str().starts_with('\n'),
        Some(Node::Custom(_)) => true,
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

/// Writes a comment. HTML has no escapes in comments, so a space separates characters that would
/// end it (HTML 13.1.6; XML 1.0, section 2.5). The same applies to `</`: in `<title>` and similar
/// elements a comment is text, which an end tag ends.
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
