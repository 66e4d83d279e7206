//! Decides what a page is: something that writes itself, once.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::Writer;

/// A page, or a part of one: a value that is consumed by writing it.
///
/// A component is a plain function that returns `impl Page`; it stands in a hole like any other value. Where one of
/// several pages is chosen at run time, they are of one type as `Box<dyn Page>`; a `Vec` of pages is a page too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a page",
    note = "`html! {{ .. }}` makes a page, of text too: `html!({{text}})`; \
            a component is a function that returns `impl Page`"
)]
pub trait Page: Unboxed {
    /// Writes the page to the end of what `writer` holds.
    fn write(self, writer: &mut Writer<'_>)
    where
        Self: Sized;

    /// Whether it is whole by itself, from its doctype on, so that no layout stands around it.
    fn is_document(&self) -> bool {
        false
    }
}

/// Lets a boxed page of unknown type be written, which takes the value out of its box.
#[diagnostic::on_unimplemented(message = "`{Self}` is not a page")]
#[doc(hidden)]
pub trait Unboxed {
    fn write_unboxed(self: Box<Self>, writer: &mut Writer<'_>);
}

impl<P: Page> Unboxed for P {
    fn write_unboxed(self: Box<Self>, writer: &mut Writer<'_>) {
        (*self).write(writer);
    }
}

impl<P: Page + ?Sized> Page for Box<P> {
    fn write(self, writer: &mut Writer<'_>) {
        self.write_unboxed(writer);
    }

    fn is_document(&self) -> bool {
        (**self).is_document()
    }
}

impl<P: Page> Page for Vec<P> {
    fn write(self, writer: &mut Writer<'_>) {
        for page in self {
            page.write(writer);
        }
    }
}

/// The page that `html!` makes: a closure that has taken what it shows.
#[must_use = "a page does nothing until it is written"]
pub struct Markup<F> {
    write: F,
    is_document: bool,
}

/// Makes a page of a closure; `html!` expands to a call of this.
pub fn page<F: FnOnce(&mut Writer<'_>)>(write: F) -> Markup<F> {
    Markup { write, is_document: false }
}

/// Makes a page of a closure that writes a whole document; what `html!` expands to if its markup has a doctype.
pub fn document<F: FnOnce(&mut Writer<'_>)>(write: F) -> Markup<F> {
    Markup { write, is_document: true }
}

impl<F: FnOnce(&mut Writer<'_>)> Page for Markup<F> {
    #[inline]
    fn write(self, writer: &mut Writer<'_>) {
        (self.write)(writer);
    }

    #[inline]
    fn is_document(&self) -> bool {
        self.is_document
    }
}

impl<F> fmt::Debug for Markup<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Markup(..)")
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::{FillPage as _, FillText as _};

    fn greeting(name: &str) -> impl Page {
        page(move |writer| {
            writer.constant("<b>");
            name.fill_hole(writer);
            writer.constant("</b>");
        })
    }

    fn framed(body: impl Page) -> impl Page {
        page(move |writer| {
            writer.constant("<main>");
            body.fill_hole(writer);
            writer.constant("</main>");
        })
    }

    fn written(page: impl Page) -> String {
        let mut out = Vec::new();
        page.write(&mut Writer::new(&mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_component_is_a_function_and_takes_other_components() {
        assert_eq!(written(framed(greeting("a & b"))), "<main><b>a &amp; b</b></main>");
    }

    #[test]
    fn a_document_is_known_through_its_box() {
        let boxed: Box<dyn Page> = Box::new(document(|writer| writer.constant("<!DOCTYPE html>")));
        assert!(boxed.is_document() && !page(|_| {}).is_document());
    }

    #[test]
    fn a_page_may_consume_what_it_shows() {
        let rows = Vec::from([String::from("one"), String::from("two")]);
        let list = page(move |writer| {
            for row in rows {
                row.fill_hole(writer);
            }
        });
        assert_eq!(written(list), "onetwo");
    }

    #[test]
    fn pages_of_several_types_are_one_type_in_boxes() {
        let name = String::from("<");
        let parts: [Box<dyn Page + '_>; 2] = [
            Box::new(greeting(&name)),
            Box::new(framed(Vec::from([greeting("a"), greeting("b")]))),
        ];
        let expected = "<b>&lt;</b><main><b>a</b><b>b</b></main>";
        assert_eq!(written(Vec::from(parts)), expected);
    }
}
