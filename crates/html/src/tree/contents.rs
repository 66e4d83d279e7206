//! Decides how a page's table of contents is made of its headings.

use alloc::vec::Vec;

use super::{Below, Element, RawMarkup, TreeWriter};
use crate::{Render as _, Writer};

/// Writes the table of contents of a tree: its headings that have an id, as lists in lists (`<ol>`), each a link to
/// its place. A heading that is several levels below the one before is one list deeper.
#[derive(Clone, Default, Debug)]
pub struct Contents {
    /// The levels of the lists that are open; in each, the last item is.
    levels: Vec<u8>,
}

impl TreeWriter for Contents {
    fn open(&mut self, element: &Element, to: &mut Writer<'_>) -> Below {
        let Some(level) = heading_level(element.name()) else { return Below::Visit };
        let Some(id) = element.attribute("id").filter(|id| !id.is_empty()) else {
            return Below::Skip;
        };
        // A list closes with all that is in it, but the last one, which takes headings of any level.
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
        Below::Skip
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
