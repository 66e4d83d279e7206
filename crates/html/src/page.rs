//! Decides what a page is: something that writes itself, once.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::tree::Builder;
use crate::{Frozen, Writer};

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

    /// Writes the page once, to be kept and sent again and again.
    fn freeze(self) -> Frozen
    where
        Self: Sized,
    {
        Frozen::of(self)
    }

    /// The page as it was frozen, if it was.
    #[doc(hidden)]
    fn frozen(&self) -> Option<&Frozen> {
        None
    }

    /// Puts the page into a tree: its nodes if it has any, else what it writes.
    #[doc(hidden)]
    fn graft(self, builder: &mut Builder)
    where
        Self: Sized,
    {
        builder.written(|writer| self.write(writer));
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

    fn frozen(&self) -> Option<&Frozen> {
        (**self).frozen()
    }
}

impl<P: Page> Page for Vec<P> {
    fn write(self, writer: &mut Writer<'_>) {
        for page in self {
            page.write(writer);
        }
    }

    fn graft(self, builder: &mut Builder) {
        for page in self {
            page.graft(builder);
        }
    }
}

/// The page that `html!` makes: a closure that has taken what it shows.
#[must_use = "a page does nothing until it is written"]
pub struct Markup<F>(F);

/// Makes a page of a closure; `html!` expands to a call of this.
pub fn page<F: FnOnce(&mut Writer<'_>)>(write: F) -> Markup<F> {
    Markup(write)
}

impl<F: FnOnce(&mut Writer<'_>)> Page for Markup<F> {
    #[inline]
    fn write(self, writer: &mut Writer<'_>) {
        (self.0)(writer);
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
