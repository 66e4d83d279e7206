//! Decides how a tree reads where there is no markup: in a mail, in a search index, on a line of a terminal.

use alloc::vec::Vec;

use bine_vocabulary::{Categories, element};

use super::{Below, Element, RawMarkup, TreeWriter};
use crate::Writer;

/// Writes the text that a reader would see: paragraphs with a blank line between, the items of a list with a dash or
/// a number, pictures as what they say. Markup from [`raw`](crate::raw) and comments are left out.
#[derive(Clone, Default, Debug)]
pub struct PlainText {
    /// What has to come before the next word.
    gap: Gap,
    /// Something was written.
    is_begun: bool,
    /// The mark of an item was the last: what begins in it begins behind that.
    is_after_mark: bool,
    /// The lists that are open: the number of the next item, or none.
    lists: Vec<Option<u32>>,
    /// How many elements are open in which white space counts.
    kept: usize,
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
    fn open(&mut self, element: &Element, to: &mut Writer<'_>) -> Below {
        match element.name() {
            "head" | "script" | "style" | "template" => return Below::Skip,
            "br" => {
                self.leave(Gap::Line);
                return Below::Skip;
            }
            "img" => {
                self.text(element.attribute("alt").unwrap_or_default(), to);
                return Below::Skip;
            }
            "ul" | "menu" => self.lists.push(None),
            "ol" => {
                let first = element.attribute("start").and_then(|start| start.parse().ok());
                self.lists.push(Some(first.unwrap_or(1)));
            }
            "pre" | "textarea" => self.kept += 1,
            _ => {}
        }
        self.leave(self.gap_around(element.name()));
        if element.name() == "li" {
            self.item(to);
        }
        Below::Visit
    }

    fn close(&mut self, element: &Element, _to: &mut Writer<'_>) {
        match element.name() {
            "ul" | "menu" | "ol" => {
                self.lists.pop();
            }
            "pre" | "textarea" => self.kept -= 1,
            "li" => self.is_after_mark = false,
            _ => {}
        }
        self.leave(self.gap_around(element.name()));
    }

    fn text(&mut self, text: &str, to: &mut Writer<'_>) {
        if self.kept > 0 {
            self.word(text, to);
            return;
        }
        if text.starts_with(is_blank) {
            self.leave(Gap::Space);
        }
        let mut words = text.split(is_blank).filter(|word| !word.is_empty()).peekable();
        while let Some(word) = words.next() {
            self.word(word, to);
            if words.peek().is_some() || text.ends_with(is_blank) {
                self.leave(Gap::Space);
            }
        }
    }

    fn raw(&mut self, _markup: &RawMarkup, _to: &mut Writer<'_>) {}

    fn comment(&mut self, _text: &str, _to: &mut Writer<'_>) {}

    fn doctype(&mut self, _to: &mut Writer<'_>) {}

    fn end(&mut self, to: &mut Writer<'_>) {
        if self.is_begun {
            to.constant("\n");
        }
    }
}

impl PlainText {
    /// What stands between an element and what is beside it.
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

    fn leave(&mut self, gap: Gap) {
        if !self.is_after_mark {
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
        (self.is_begun, self.is_after_mark) = (true, true);
    }

    fn word(&mut self, word: &str, to: &mut Writer<'_>) {
        if !word.is_empty() {
            self.fill_gap(to);
            to.unescaped(word);
            (self.is_begun, self.is_after_mark) = (true, false);
        }
    }

    fn fill_gap(&mut self, to: &mut Writer<'_>) {
        let gap = core::mem::take(&mut self.gap);
        if self.is_begun {
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

/// White space of HTML (2.1.2), as opposed to a space that does not break.
fn is_blank(char: char) -> bool {
    char.is_ascii_whitespace()
}
