//! Decides how a value gets into a hole: text is borrowed, a page is consumed.
//!
//! `html!` writes `(expression).fill_hole(writer)` and lets the method search choose. It looks for a method
//! on the value before one on a reference to it, so a page moves in while text is only looked at: a `String`
//! may stand in two holes. A single by-value trait would make every text hole consume its variable.

use crate::page::Page;
use crate::raw::Raw;
use crate::render::Render;
use crate::writer::Writer;

/// Fills a hole with a page, by value.
pub trait FillPage: Sized {
    /// Writes the page here.
    fn fill_hole(self, writer: &mut Writer<'_>);
}

impl<P: Page> FillPage for P {
    #[inline]
    fn fill_hole(self, writer: &mut Writer<'_>) {
        self.write(writer);
    }
}

impl<P: Page> FillPage for Option<P> {
    #[inline]
    fn fill_hole(self, writer: &mut Writer<'_>) {
        if let Some(page) = self {
            page.write(writer);
        }
    }
}

/// Fills a hole with text, by reference.
///
/// The method is there for all types and asks for [`Render`] itself, so that the method search ends here and the
/// compiler complains in `Render`'s words.
pub trait FillText {
    /// Writes the text here, escaped.
    fn fill_hole(&self, writer: &mut Writer<'_>)
    where
        Self: Render;
}

impl<T: ?Sized> FillText for T {
    #[inline]
    fn fill_hole(&self, writer: &mut Writer<'_>)
    where
        T: Render,
    {
        self.render(writer);
    }
}

/// What may stand in a hole of `<script>` and `<style>`, where a browser undoes no escape.
#[diagnostic::on_unimplemented(
    message = "text cannot be escaped inside `<script>` and `<style>`",
    label = "wrap this in `raw(..)` if every byte of it is yours",
    note = "what a script needs to know is safe in a `data-*` attribute, where it can read it"
)]
pub trait RawText: Render {}

impl<T: AsRef<str>> RawText for Raw<T> {}

#[cfg(test)]
mod tests {
    use alloc::rc::Rc;
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;
    use crate::{page, raw};

    #[track_caller]
    fn check(fill: impl FnOnce(&mut Writer<'_>), expected: &str) {
        let mut out = Vec::new();
        fill(&mut Writer::new(&mut out));
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_text_hole_only_borrows() {
        let name = String::from("<a>");
        check(
            move |writer| {
                name.fill_hole(writer);
                name.fill_hole(writer);
            },
            "&lt;a&gt;&lt;a&gt;",
        );
    }

    #[test]
    fn an_integer_of_no_stated_type_fills_a_hole() {
        let count = 3;
        check(move |writer| count.fill_hole(writer), "3");
    }

    #[test]
    fn nothing_fills_a_hole_with_nothing() {
        check(|writer| None::<&str>.fill_hole(writer), "");
        check(|writer| Some("x").fill_hole(writer), "x");
        check(
            |writer| true.then(|| page(|writer| writer.constant("<hr />"))).fill_hole(writer),
            "<hr />",
        );
    }

    #[test]
    fn whatever_points_at_text_fills_a_hole() {
        check(|writer| Rc::<str>::from("a<").fill_hole(writer), "a&lt;");
        check(|writer| (&&&"b").fill_hole(writer), "b");
    }

    #[test]
    fn raw_text_is_not_escaped() {
        check(|writer| writer.fill_raw(&raw("a < b")), "a < b");
        check(|writer| raw(String::from("<i>")).fill_hole(writer), "<i>");
    }
}
