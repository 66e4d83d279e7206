//! Tables of contents from the headings of a page.

use alloc::vec::Vec;

use super::{Element, RawMarkup, Subtree, TreeWriter};
use crate::{Render as _, Writer};

/// Writes the table of contents of a tree: nested lists (`<ol>`) of links to the headings that have
/// an id. A heading that skips levels is nested only one list deeper.
#[derive(Clone, Default, Debug)]
pub struct TableOfContents {
    /// The heading levels of the open lists. The last item of each list is open too.
    levels: Vec<u8>,
}

impl TreeWriter for TableOfContents {
    fn open(&mut self, element: &Element, to: &mut Writer<'_>) -> Subtree {
        let Some(level) = heading_level(element.name()) else { return Subtree::Visit };
        let Some(id) = element.attribute("id").filter(|id| !id.is_empty()) else {
            return Subtree::Skip;
        };
        // Closes deeper lists, except the outermost, which takes headings of any level.
        while self.levels.len() > 1 && self.levels.last().is_some_and(|last| *last > level) {
            self.levels.pop();
            to.constant("</li></ol>");
        }
        match self.levels.last() {
            Some(last) if *last >= level => to.constant("</li>"),
            _ => {
                to.constant("<ol>");
                self.levels.push(level);
            }
        }
        to.constant("<li><a href=\"#");
        to.text(id);
        to.constant("\">");
        element.text().trim().render(to);
        to.constant("</a>");
        Subtree::Skip
    }

    fn close(&mut self, _element: &Element, _to: &mut Writer<'_>) {}

    fn text(&mut self, _text: &str, _to: &mut Writer<'_>) {}

    fn raw(&mut self, _markup: &RawMarkup, _to: &mut Writer<'_>) {}

    fn comment(&mut self, _text: &str, _to: &mut Writer<'_>) {}

    fn doctype(&mut self, _to: &mut Writer<'_>) {}

    fn end(&mut self, to: &mut Writer<'_>) {
        for _ in self.levels.drain(..) {
            to.constant("</li></ol>");
        }
    }
}

/// The level of `h1` to `h6`.
pub(super) fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h' | b'H', level @ b'1'..=b'6'] => Some(level - b'0'),
        _ => None,
    }
}
