//! [`PlainText`]: serialization without markup, for mail, search indexes and terminals.

use alloc::vec::Vec;

use bine_vocabulary::{Categories, element};

use super::{Element, RawMarkup, Subtree, TreeWriter};
use crate::Writer;

/// Writes the visible text: a blank line between paragraphs, a dash or a number before list items,
/// and alternative text for images. Markup from [`raw`](crate::raw) and comments are omitted.
#[derive(Clone, Default, Debug)]
pub struct PlainText {
    /// The white space to write before the next word.
    gap: Gap,
    /// Whether any output was written.
    has_output: bool,
    /// Whether the marker of a list item was written last. Its content follows on the same line.
    is_after_marker: bool,
    /// The open lists, with the next number of ordered lists.
    lists: Vec<Option<u32>>,
    /// The number of open elements that preserve white space.
    preserving: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
enum Gap {
    #[default]
    None,
    Space,
    Tab,
    Line,
    Paragraph,
}

impl TreeWriter for PlainText {
    fn open(&mut self, element: &Element, to: &mut Writer<'_>) -> Subtree {
        match element.name() {
            "head" | "script" | "style" | "template" => return Subtree::Skip,
            "br" => {
                self.request_gap(Gap::Line);
                return Subtree::Skip;
            }
            "img" => {
                self.text(element.attribute("alt").unwrap_or_default(), to);
                return Subtree::Skip;
            }
            "ul" | "menu" => self.lists.push(None),
            "ol" => {
                let first = element.attribute("start").and_then(|start| start.parse().ok());
                self.lists.push(Some(first.unwrap_or(1)));
            }
            "pre" | "textarea" => self.preserving += 1,
            _ => {}
        }
        self.request_gap(self.gap_around(element.name()));
        if element.name() == "li" {
            self.item(to);
        }
        Subtree::Visit
    }

    fn close(&mut self, element: &Element, _to: &mut Writer<'_>) {
        match element.name() {
            "ul" | "menu" | "ol" => {
                self.lists.pop();
            }
            "pre" | "textarea" => self.preserving -= 1,
            "li" => self.is_after_marker = false,
            _ => {}
        }
        self.request_gap(self.gap_around(element.name()));
    }

    fn text(&mut self, text: &str, to: &mut Writer<'_>) {
        if self.preserving > 0 {
            self.word(text, to);
            return;
        }
        if text.starts_with(is_blank) {
            self.request_gap(Gap::Space);
        }
        let mut words = text.split(is_blank).filter(|word| !word.is_empty()).peekable();
        while let Some(word) = words.next() {
            self.word(word, to);
            if words.peek().is_some() || text.ends_with(is_blank) {
                self.request_gap(Gap::Space);
            }
        }
    }

    fn raw(&mut self, _markup: &RawMarkup, _to: &mut Writer<'_>) {}

    fn comment(&mut self, _text: &str, _to: &mut Writer<'_>) {}

    fn doctype(&mut self, _to: &mut Writer<'_>) {}

    fn end(&mut self, to: &mut Writer<'_>) {
        if self.has_output {
            to.constant("\n");
        }
    }
}

impl PlainText {
    /// The gap between an element and its siblings.
    fn gap_around(&self, name: &str) -> Gap {
        match element(name) {
            Some(_) if ["td", "th"].contains(&name) => Gap::Tab,
            Some(known) if known.categories.intersects(Categories::PART) => Gap::Line,
            Some(known) if known.categories.intersects(Categories::PHRASING) => Gap::None,
            Some(_) if self.lists.is_empty() => Gap::Paragraph,
            Some(_) => Gap::Line,
            None => Gap::None,
        }
    }

    fn request_gap(&mut self, gap: Gap) {
        if !self.is_after_marker {
            self.gap = self.gap.max(gap);
        }
    }

    fn item(&mut self, to: &mut Writer<'_>) {
        self.fill_gap(to);
        for _ in 1..self.lists.len() {
            to.constant("  ");
        }
        match self.lists.last_mut() {
            Some(Some(number)) => {
                crate::Render::render(number, to);
                to.constant(". ");
                *number = number.saturating_add(1);
            }
            _ => to.constant("- "),
        }
        (self.has_output, self.is_after_marker) = (true, true);
    }

    fn word(&mut self, word: &str, to: &mut Writer<'_>) {
        if !word.is_empty() {
            self.fill_gap(to);
            to.unescaped(word);
            (self.has_output, self.is_after_marker) = (true, false);
        }
    }

    fn fill_gap(&mut self, to: &mut Writer<'_>) {
        let gap = core::mem::take(&mut self.gap);
        if self.has_output {
            to.constant(match gap {
                Gap::None => "",
                Gap::Space => " ",
                Gap::Tab => "\t",
                Gap::Line => "\n",
                Gap::Paragraph => "\n\n",
            });
        }
    }
}

/// Whether HTML treats the character as white space (2.1.2); a no-break space is not.
fn is_blank(char: char) -> bool {
    char.is_ascii_whitespace()
}
