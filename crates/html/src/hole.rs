//! How a value fills a hole: text values by reference, pages by value, and which values a hole
//! accepts.
//!
//! `html!` expands a hole to `(expression).fill_flow(writer)`, or the method for its place, and
//! method resolution selects the trait. Rust looks for a method of the value before a method of a
//! reference to it, so a page moves into the hole while text is borrowed: two holes can show the
//! same `String`. A single trait with a by-value method would make every text hole consume its
//! variable. Both methods exist for all types and have their own bounds, so the search ends here
//! and an unmet bound produces this crate's error message. `tree!` expands to the same calls with
//! its builder as the argument.

use core::marker::PhantomData;

use crate::content::{ContentKind, FitsIn, Flow, Fragment, Html, Parts, Phrasing};
use crate::frozen::Frozen;
use crate::page::Page;
use crate::raw::Raw;
use crate::render::Render;
use crate::show::Show;
use crate::tree::{Builder, Element, Node, Tree};
use crate::writer::Writer;

/// Fills a hole with a page, by value.
pub trait FillPage: Sized {
    /// Writes the page where flow content is allowed.
    fn fill_flow(self, to: &mut impl Sink)
    where
        Self: InFlow;

    /// Writes the page where phrasing content is allowed.
    fn fill_phrasing(self, to: &mut impl Sink)
    where
        Self: InPhrasing;

    /// Writes the page where only text is allowed.
    fn fill_text(self, to: &mut impl Sink)
    where
        Self: InText;

    /// Writes the page where only certain elements are allowed.
    fn fill_parts(self, to: &mut impl Sink)
    where
        Self: InParts;

    /// Writes the page where elements of several kinds are allowed, but no text.
    fn fill_pieces(self, to: &mut impl Sink)
    where
        Self: InAnything;

    /// Writes the page where any content is allowed.
    fn fill_anything(self, to: &mut impl Sink)
    where
        Self: InAnything;
}

macro_rules! fill {
    ($($fill:ident: $bound:ident;)*) => {$(
        #[inline]
        fn $fill(self, to: &mut impl Sink)
        where
            Self: $bound,
        {
            to.page(self);
        }
    )*};
}

impl<F: Fill> FillPage for F {
    fill! {
        fill_flow: InFlow;
        fill_phrasing: InPhrasing;
        fill_text: InText;
        fill_parts: InParts;
        fill_pieces: InAnything;
        fill_anything: InAnything;
    }
}

/// The target of holes: a page being written, or a tree being built.
pub trait Sink {
    fn page(&mut self, page: impl Fill);
    fn value<Kind>(&mut self, value: &(impl Value<Kind> + ?Sized));
}

impl Sink for Writer<'_> {
    #[inline]
    fn page(&mut self, page: impl Fill) {
        page.fill(self);
    }

    #[inline]
    fn value<Kind>(&mut self, value: &(impl Value<Kind> + ?Sized)) {
        value.write_value(self);
    }
}

impl Sink for Builder {
    fn page(&mut self, page: impl Fill) {
        page.graft(self);
    }

    fn value<Kind>(&mut self, value: &(impl Value<Kind> + ?Sized)) {
        value.graft_value(self);
    }
}

/// A page or an `Option` of one. The `Option` is not a [`Page`] itself, because no handler returns
/// it.
pub trait Fill {
    fn fill(self, writer: &mut Writer<'_>);
    fn graft(self, builder: &mut Builder);
}

impl<P: Page> Fill for P {
    #[inline]
    fn fill(self, writer: &mut Writer<'_>) {
        self.write(writer);
    }

    fn graft(self, builder: &mut Builder) {
        Page::graft(self, builder);
    }
}

impl<P: Page> Fill for Option<P> {
    #[inline]
    fn fill(self, writer: &mut Writer<'_>) {
        if let Some(page) = self {
            page.write(writer);
        }
    }

    fn graft(self, builder: &mut Builder) {
        if let Some(page) = self {
            Page::graft(page, builder);
        }
    }
}

/// The bound of a page in a place for flow content.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not allowed here: only flow content is",
    label = "not known to be flow content",
    note = "a component declares its content: it returns `impl Html<Flow>`, or `impl Html<Phrasing>` if it is text and \
            elements such as `<b>` and `<a>`; `impl Page` is a whole page, `impl Html<Parts>` is allowed in certain elements"
)]
pub trait InFlow: Fill {}

/// The bound of a page in a place for phrasing content.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not allowed here: only phrasing content is (text, `<b>`, `<a>`, `<img>` ..)",
    label = "not known to be phrasing content",
    note = "a component declares its content: it returns `impl Html<Phrasing>` if it is text and elements such as `<b>` and \
            `<a>`; `impl Html<Flow>` and `impl Page` may be more than that"
)]
pub trait InPhrasing: Fill {}

/// The bound of a page in a place for certain elements only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not allowed here: only certain elements are (`<li>` in `<ul>`, `<tr>` in `<table>` ..)",
    label = "not known to be allowed in this element",
    note = "a component declares its content: it returns `impl Html<Parts>` if it is an element such as `<li>` and `<tr>`"
)]
pub trait InParts: Fill {}

/// The bound of a page in a place for text only. No type implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not allowed here: only text is",
    label = "no markup is allowed here"
)]
pub trait InText: Fill {}

/// The bound of a page in a place for any content.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not allowed here: it is a whole page",
    label = "not known to be a part of a page",
    note = "a component declares its content: it returns `impl Html<Flow>`, `impl Html<Phrasing>` or `impl Html<Parts>`"
)]
pub trait InAnything: Fill {}

macro_rules! impl_for_pages {
    ($($place:ident: $bound:path;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<P: $bound> $place for P {}
        #[diagnostic::do_not_recommend]
        impl<P: $bound> $place for Option<P> {}
    )*};
}

impl_for_pages! {
    InFlow: FitsIn<Flow>;
    InPhrasing: Html<Phrasing>;
    InParts: FitsIn<Parts>;
    InAnything: Fragment;
}

/// Fills a hole with a value, by reference.
pub trait FillValue {
    /// Writes the value where flow content is allowed.
    fn fill_flow<Kind>(&self, to: &mut impl Sink)
    where
        Self: FlowValue<Kind>;

    /// Writes the value where phrasing content is allowed.
    fn fill_phrasing<Kind>(&self, to: &mut impl Sink)
    where
        Self: PhrasingValue<Kind>;

    /// Writes the value where only text is allowed.
    fn fill_text(&self, to: &mut impl Sink)
    where
        Self: Render;

    /// Writes the value where only certain elements are allowed.
    fn fill_parts<Kind>(&self, to: &mut impl Sink)
    where
        Self: PartsValue<Kind>;

    /// Writes the value where elements of several kinds are allowed, but no text.
    fn fill_pieces<Kind>(&self, to: &mut impl Sink)
    where
        Self: PiecesValue<Kind>;

    /// Writes the value where any content is allowed.
    fn fill_anything<Kind>(&self, to: &mut impl Sink)
    where
        Self: AnyValue<Kind>;
}

macro_rules! fill_value {
    ($($fill:ident: $bound:ident;)*) => {$(
        #[inline]
        fn $fill<Kind>(&self, to: &mut impl Sink)
        where
            Self: $bound<Kind>,
        {
            to.value(self);
        }
    )*};
}

impl<T: ?Sized> FillValue for T {
    fill_value! {
        fill_flow: FlowValue;
        fill_phrasing: PhrasingValue;
        fill_parts: PartsValue;
        fill_pieces: PiecesValue;
        fill_anything: AnyValue;
    }

    #[inline]
    fn fill_text(&self, to: &mut impl Sink)
    where
        Self: Render,
    {
        to.value(self);
    }
}

/// The kind of a value that is [rendered](Render) as text. A [`Show`] type's kind is its content
/// kind.
#[derive(Debug)]
pub enum AsText {}

/// The kind of an `Option` of a [`Show`] type.
#[derive(Debug)]
pub struct Optional<Content>(PhantomData<Content>);

/// A value that can be written. The compiler infers `Kind`, which separates the implementations.
pub trait Value<Kind> {
    fn write_value(&self, writer: &mut Writer<'_>);
    fn graft_value(&self, builder: &mut Builder);
}

impl<T: Render + ?Sized> Value<AsText> for T {
    #[inline]
    fn write_value(&self, writer: &mut Writer<'_>) {
        self.render(writer);
    }

    fn graft_value(&self, builder: &mut Builder) {
        self.graft(builder);
    }
}

impl<T: Show<Content> + ?Sized, Content: ContentKind> Value<Content> for T {
    #[inline]
    fn write_value(&self, writer: &mut Writer<'_>) {
        self.show().write(writer);
    }

    fn graft_value(&self, builder: &mut Builder) {
        Page::graft(self.show(), builder);
    }
}

impl<T: Show<Content>, Content: ContentKind> Value<Optional<Content>> for Option<T> {
    #[inline]
    fn write_value(&self, writer: &mut Writer<'_>) {
        if let Some(value) = self {
            value.show().write(writer);
        }
    }

    fn graft_value(&self, builder: &mut Builder) {
        if let Some(value) = self {
            Page::graft(value.show(), builder);
        }
    }
}

/// A value in a place for flow content.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value for a hole",
    label = "not text, no number and no markup",
    note = "a hole takes text, numbers, components, and `Option` of these; for several values: `{{for one in many {{ {{one}} }}}}`; \
            for a `bool`: `{{if flag {{ yes }}}}`",
    note = "for types with `Display`: `format_args!(\"{{}}\", value)`; for your own type, implement `Show` for it, or `Render` \
            if it is text"
)]
pub trait FlowValue<Kind>: Value<Kind> {}

/// A value in a place for phrasing content.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value for this hole",
    label = "not text, no number and no phrasing content",
    note = "a hole takes text, numbers, components, and `Option` of these; for several values: `{{for one in many {{ {{one}} }}}}`; \
            for a `bool`: `{{if flag {{ yes }}}}`",
    note = "for types with `Display`: `format_args!(\"{{}}\", value)`; for your own type, implement `Show<Phrasing>` for it \
            (`Show` alone may be more than phrasing content), or `Render` if it is text"
)]
pub trait PhrasingValue<Kind>: Value<Kind> {}

/// A value in a place for certain elements only.
#[diagnostic::on_unimplemented(
    message = "no text is allowed here: only certain elements are (`<li>` in `<ul>`, `<tr>` in `<table>` ..)",
    label = "`{Self}` is not allowed in this element",
    note = "put it into its element, as in `<li>{{text}}</li>`; a component that is an element such as `<li>` returns `impl Html<Parts>`"
)]
pub trait PartsValue<Kind>: Value<Kind> {}

/// A value in a place for elements of several kinds, but no text.
#[diagnostic::on_unimplemented(
    message = "no text is allowed here: only certain elements are (`<dt>` in `<dl>`, `<option>` in `<select>` ..)",
    label = "`{Self}` is not allowed in this element",
    note = "put it into its element, as in `<dd>{{text}}</dd>`"
)]
pub trait PiecesValue<Kind>: Value<Kind> {}

/// A value in a place for any content.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value for a hole",
    label = "not text, no number and no markup",
    note = "for types with `Display`: `format_args!(\"{{}}\", value)`; for your own type, implement `Show` for it, or `Render` \
            if it is text"
)]
pub trait AnyValue<Kind>: Value<Kind> {}

macro_rules! impl_for_shown {
    ($($place:ident: $($content:ident)*;)*) => {$($(
        #[diagnostic::do_not_recommend]
        impl<T: Show<$content> + ?Sized> $place<$content> for T {}
        #[diagnostic::do_not_recommend]
        impl<T: Show<$content>> $place<Optional<$content>> for Option<T> {}
    )*)*};
}

impl_for_shown! {
    FlowValue: Flow Phrasing;
    PhrasingValue: Phrasing;
    PartsValue: Parts;
    PiecesValue: Flow Phrasing Parts;
    AnyValue: Flow Phrasing Parts;
}

macro_rules! impl_for_rendered {
    ($($place:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Render + ?Sized> $place<AsText> for T {}
    )*};
}

impl_for_rendered!(FlowValue PhrasingValue AnyValue);

/// The text of `raw` may be any markup, so any place accepts it.
impl<T: AsRef<str>> PartsValue<AsText> for Raw<T> {}
impl<T: AsRef<str>> PiecesValue<AsText> for Raw<T> {}

macro_rules! impl_for_run_time_kinds {
    ($($of:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl PartsValue<AsText> for $of {}
        #[diagnostic::do_not_recommend]
        impl PiecesValue<AsText> for $of {}
    )*};
}

impl_for_run_time_kinds!(Tree Element Node Frozen);

/// A value in a hole of `<script>` and `<style>`, where a browser decodes no character references.
#[diagnostic::on_unimplemented(
    message = "text cannot be escaped inside `<script>` and `<style>`",
    label = "wrap this in `raw(..)` if it is trusted",
    note = "pass data to a script in a `data-*` attribute"
)]
pub trait RawText {
    /// The script or the style sheet.
    fn code(&self) -> &str;
}

impl<T: AsRef<str>> RawText for Raw<T> {
    #[inline]
    fn code(&self) -> &str {
        self.0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::rc::Rc;
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;
    use crate::content::ScriptSupporting;
    use crate::{page, raw};

    #[track_caller]
    fn check(fill: impl FnOnce(&mut Writer<'_>), expected: &str) {
        let mut out = Vec::new();
        fill(&mut Writer::new(&mut out));
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    fn rule() -> impl Html<Flow> {
        page::<Flow, _>(|writer| writer.constant("<hr />"))
    }

    fn word() -> impl Html<Phrasing> {
        page::<Phrasing, _>(|writer| writer.constant("<b>a</b>"))
    }

    fn item() -> impl Html<Parts> {
        page::<Parts, _>(|writer| writer.constant("<li>a</li>"))
    }

    #[test]
    fn borrows_text_values() {
        let name = String::from("<a>");
        check(
            move |writer| {
                name.fill_phrasing(writer);
                name.fill_flow(writer);
                name.fill_text(writer);
                name.fill_anything(writer);
            },
            "&lt;a&gt;&lt;a&gt;&lt;a&gt;&lt;a&gt;",
        );
    }

    #[test]
    fn fills_a_hole_with_an_untyped_integer() {
        let count = 3;
        check(move |writer| count.fill_phrasing(writer), "3");
        check(move |writer| count.fill_flow(writer), "3");
    }

    #[test]
    fn writes_nothing_for_none() {
        check(|writer| None::<&str>.fill_phrasing(writer), "");
        check(|writer| Some("x").fill_phrasing(writer), "x");
        check(|writer| true.then(rule).fill_flow(writer), "<hr />");
        check(|writer| false.then(item).fill_parts(writer), "");
    }

    #[test]
    fn follows_pointers_to_text() {
        check(|writer| Rc::<str>::from("a<").fill_phrasing(writer), "a&lt;");
        check(|writer| (&&&"b").fill_flow(writer), "b");
    }

    #[test]
    fn accepts_raw_text_in_every_hole() {
        check(|writer| writer.fill_raw(&raw("a < b")), "a < b");
        check(|writer| raw(String::from("<i>")).fill_phrasing(writer), "<i>");
        check(|writer| raw("<li>").fill_parts(writer), "<li>");
        check(|writer| raw("<dt>").fill_pieces(writer), "<dt>");
    }

    #[test]
    fn accepts_phrasing_content_as_flow_content() {
        check(|writer| word().fill_flow(writer), "<b>a</b>");
        check(|writer| page::<Phrasing, _>(|_| {}).fill_flow(writer), "");
        let boxed: Box<dyn Html<Phrasing>> = Box::new(word());
        check(|writer| boxed.fill_flow(writer), "<b>a</b>");
        let boxed: Box<dyn Html<Flow>> = Box::new(page::<Phrasing, _>(|_| {}));
        check(|writer| boxed.fill_flow(writer), "");
    }

    #[test]
    fn vec_has_the_kind_of_its_items() {
        check(|writer| Vec::from([word(), word()]).fill_phrasing(writer), "<b>a</b><b>a</b>");
        check(|writer| Vec::from([item()]).fill_parts(writer), "<li>a</li>");
        check(|writer| Some(Vec::from([item()])).fill_pieces(writer), "<li>a</li>");
    }

    #[test]
    fn accepts_script_supporting_content_in_every_hole() {
        let anywhere = || page::<ScriptSupporting, _>(|writer| writer.constant("<wbr />"));
        check(|writer| anywhere().fill_flow(writer), "<wbr />");
        check(|writer| anywhere().fill_phrasing(writer), "<wbr />");
        check(|writer| anywhere().fill_parts(writer), "<wbr />");
    }

    struct Message(&'static str);

    impl Show for Message {
        fn show(&self) -> impl Html<Flow> {
            page::<Flow, _>(|writer| self.0.fill_flow(writer))
        }
    }

    struct Name(&'static str);

    impl Show<Phrasing> for Name {
        fn show(&self) -> impl Html<Phrasing> {
            page::<Phrasing, _>(|writer| self.0.fill_phrasing(writer))
        }
    }

    #[test]
    fn borrows_shown_values() {
        let (message, name) = (Message("a<"), Box::new(Name("b")));
        check(
            move |writer| {
                message.fill_flow(writer);
                (&&message).fill_anything(writer);
                name.fill_phrasing(writer);
                name.fill_flow(writer);
                Some(&message).fill_flow(writer);
                None::<Message>.fill_anything(writer);
            },
            "a&lt;a&lt;bba&lt;",
        );
    }
}
