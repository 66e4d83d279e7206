//! Decides what a page is: something that writes itself, once.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use crate::content::{Anywhere, Flow, Html, Outermost, Parts, Phrasing, Piece, Stands};
use crate::frozen::Frozen;
use crate::tree::Builder;
use crate::writer::Writer;

/// A page: a value that is consumed by writing it. It is what handlers and layouts return.
///
/// A part of a page is one too, and says besides what it contains: a component is a plain function that returns
/// [`impl Html<Flow>`](Html) or the like of it. Where one of several pages is chosen at run time, they are of one type as
/// `Box<dyn Page>`; a `Vec` of pages is a page too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a page",
    note = "`html! {{ .. }}` makes a page, of text too: `html!({{text}})`"
)]
pub trait Page: Unboxed {
    /// Writes the page to the end of what `writer` holds.
    fn write(self, writer: &mut Writer<'_>)
    where
        Self: Sized;

    /// Whether all pages of the type are whole documents, `<html>` and all, that readers of XML understand if they are
    /// [written for them](Writer::in_xml).
    fn is_document() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Whether this page is such a document: of some types only the value tells.
    fn is_this_document(&self) -> bool
    where
        Self: Sized,
    {
        Self::is_document()
    }

    /// Whether it is whole by itself, so that no layout stands around it: it has its own `<html>`, or what stands in no
    /// body.
    fn is_whole(&self) -> bool {
        false
    }

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

    fn is_whole(&self) -> bool {
        (**self).is_whole()
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

/// The page that `html!` makes: a closure that has taken what it shows, and the kind of its content.
#[must_use = "a page does nothing until it is written"]
pub struct Markup<F, Content>(F, PhantomData<fn() -> Content>);

/// Makes a page of a closure, whose caller answers for its content; `html!` expands to a call of this.
pub fn page<Content, F: FnOnce(&mut Writer<'_>)>(write: F) -> Markup<F, Content> {
    Markup(write, PhantomData)
}

impl<F: FnOnce(&mut Writer<'_>), Content: Outermost> Page for Markup<F, Content> {
    #[inline]
    fn write(self, writer: &mut Writer<'_>) {
        (self.0)(writer);
    }

    #[inline]
    fn is_whole(&self) -> bool {
        Content::IS_WHOLE
    }

    fn is_document() -> bool {
        Content::IS_DOCUMENT
    }
}

impl<F, Content> fmt::Debug for Markup<F, Content> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Markup(..)")
    }
}

macro_rules! contained {
    ($($content:ident: Html $html:tt, Stands $stands:tt;)*) => {$(
        impl<F: FnOnce(&mut Writer<'_>)> Piece for Markup<F, $content> {}
        contained!(@ Html $content $html);
        contained!(@ Stands $content $stands);
    )*};
    (@ $trait:ident $content:ident [$($of:ident)*]) => {$(
        #[diagnostic::do_not_recommend]
        impl<F: FnOnce(&mut Writer<'_>)> $trait<$of> for Markup<F, $content> {}
    )*};
}

contained! {
    Flow: Html[Flow], Stands[Flow];
    Phrasing: Html[Flow Phrasing], Stands[Flow];
    Parts: Html[Parts], Stands[Parts];
    Anywhere: Html[Flow Phrasing Parts], Stands[Flow Parts];
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::{Document, FillPage as _, FillValue as _};

    fn greeting(name: &str) -> impl Html<Phrasing> {
        page::<Phrasing, _>(move |writer| {
            writer.constant("<b>");
            name.fill_phrasing(writer);
            writer.constant("</b>");
        })
    }

    fn framed(body: impl Html<Flow>) -> impl Html<Flow> {
        page::<Flow, _>(move |writer| {
            writer.constant("<main>");
            body.fill_flow(writer);
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
        let inner = page::<Phrasing, _>(|writer| greeting("a & b").fill_phrasing(writer));
        assert_eq!(written(framed(inner)), "<main><b>a &amp; b</b></main>");
    }

    #[test]
    fn a_document_is_known_through_its_box() {
        let whole = page::<Document, _>(|writer| writer.constant("<html></html>"));
        let boxed: Box<dyn Page> = Box::new(whole);
        assert!(boxed.is_whole() && !page::<Flow, _>(|_| {}).is_whole());
    }

    #[test]
    fn a_page_may_consume_what_it_shows() {
        let rows = Vec::from([String::from("one"), String::from("two")]);
        let list = page::<Flow, _>(move |writer| {
            for row in rows {
                row.fill_flow(writer);
            }
        });
        assert_eq!(written(list), "onetwo");
    }

    #[test]
    fn pages_of_several_types_are_one_type_in_boxes() {
        let name = String::from("<");
        let several = Vec::from([greeting("a"), greeting("b")]);
        let parts: [Box<dyn Page + '_>; 2] = [Box::new(greeting(&name)), Box::new(several)];
        assert_eq!(written(Vec::from(parts)), "<b>&lt;</b><b>a</b><b>b</b>");
    }
}
