//! The [`Page`] trait: a value that writes itself once.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use crate::content::{
    FitsIn, Flow, Fragment, Html, Parts, Phrasing, RootContent, ScriptSupporting,
};
use crate::frozen::Frozen;
use crate::tree::Builder;
use crate::writer::Writer;

/// A page: a value that is consumed by writing it. Handlers and layouts return pages.
///
/// A component is a plain function that returns part of a page and names its kind of content:
/// [`impl Html<Flow>`](Html) or a similar type. `Box<dyn Page>` gives pages that are chosen at run
/// time a single type. A `Vec` of pages is a page too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a page",
    note = "`html! {{ .. }}` builds a page, also from text: `html!({{text}})`"
)]
pub trait Page: Unboxed {
    /// Writes the page to the end of what `writer` holds.
    fn write(self, writer: &mut Writer<'_>)
    where
        Self: Sized;

    /// Whether every page of this type is a whole `<html>` document. An XML parser accepts such a
    /// document when the page is [written as XHTML](Writer::switch_to_xml).
    fn is_document() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Whether this page is such a document. For some types it depends on the value.
    fn is_this_document(&self) -> bool
    where
        Self: Sized,
    {
        Self::is_document()
    }

    /// Whether the page is complete, so that no layout wraps it: it has its own `<html>`, or its
    /// content cannot be part of a body.
    fn is_whole(&self) -> bool {
        false
    }

    /// Writes the page once and keeps the bytes, to be sent any number of times.
    fn freeze(self) -> Frozen
    where
        Self: Sized,
    {
        Frozen::of(self)
    }

    /// The frozen form of the page, if it has one.
    #[doc(hidden)]
    fn frozen(&self) -> Option<&Frozen> {
        None
    }

    /// Adds the page to a tree: its nodes if it has any, otherwise the markup that it writes.
    #[doc(hidden)]
    fn graft(self, builder: &mut Builder)
    where
        Self: Sized,
    {
        builder.written(|writer| self.write(writer));
    }
}

/// Writes a boxed page of unknown type by moving the value out of its box.
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

/// The page that `html!` builds: a closure that owns or borrows its values, and its content kind.
#[must_use = "a page does nothing until it is written"]
pub struct Markup<F, Content>(F, PhantomData<fn() -> Content>);

/// Builds a page from a closure. The caller vouches for its content; `html!` expands to this call.
pub fn page<Content, F: FnOnce(&mut Writer<'_>)>(write: F) -> Markup<F, Content> {
    Markup(write, PhantomData)
}

impl<F: FnOnce(&mut Writer<'_>), Content: RootContent> Page for Markup<F, Content> {
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

macro_rules! impl_content {
    ($($content:ident: Html $html:tt, FitsIn $stands:tt;)*) => {$(
        impl<F: FnOnce(&mut Writer<'_>)> Fragment for Markup<F, $content> {}
        impl_content!(@ Html $content $html);
        impl_content!(@ FitsIn $content $stands);
    )*};
    (@ $trait:ident $content:ident [$($of:ident)*]) => {$(
        #[diagnostic::do_not_recommend]
        impl<F: FnOnce(&mut Writer<'_>)> $trait<$of> for Markup<F, $content> {}
    )*};
}

impl_content! {
    Flow: Html[Flow], FitsIn[Flow];
    Phrasing: Html[Flow Phrasing], FitsIn[Flow];
    Parts: Html[Parts], FitsIn[Parts];
    ScriptSupporting: Html[Flow Phrasing Parts], FitsIn[Flow Parts];
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
    fn composes_components_as_functions() {
        let inner = page::<Phrasing, _>(|writer| greeting("a & b").fill_phrasing(writer));
        assert_eq!(written(framed(inner)), "<main><b>a &amp; b</b></main>");
    }

    #[test]
    fn recognizes_a_boxed_document() {
        let whole = page::<Document, _>(|writer| writer.constant("<html></html>"));
        let boxed: Box<dyn Page> = Box::new(whole);
        assert!(boxed.is_whole() && !page::<Flow, _>(|_| {}).is_whole());
    }

    #[test]
    fn page_may_consume_its_values() {
        let rows = Vec::from([String::from("one"), String::from("two")]);
        let list = page::<Flow, _>(move |writer| {
            for row in rows {
                row.fill_flow(writer);
            }
        });
        assert_eq!(written(list), "onetwo");
    }

    #[test]
    fn boxes_unify_page_types() {
        let name = String::from("<");
        let several = Vec::from([greeting("a"), greeting("b")]);
        let parts: [Box<dyn Page + '_>; 2] = [Box::new(greeting(&name)), Box::new(several)];
        assert_eq!(written(Vec::from(parts)), "<b>&lt;</b><b>a</b><b>b</b>");
    }
}
