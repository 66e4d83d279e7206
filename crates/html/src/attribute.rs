//! Values that an attribute hole accepts, and when the attribute is omitted.
//!
//! `html!` knows from the attribute's name how a browser uses the value, and calls one of three
//! methods of the writer: for text, for a URL, and for code that no escape makes safe.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::{self, Write as _};

use crate::raw::Raw;
use crate::render::Render;
use crate::url_filter::UrlFilter;
use crate::writer::Writer;

/// A value of an attribute hole `name={expression}`.
///
/// `true` writes the bare attribute (as `disabled=""`, which HTML and XHTML read alike); `false`
/// and `None` omit it. The trait is separate from [`Render`] because a type may render as markup,
/// which no attribute can hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an attribute's value",
    note = "an attribute takes text, numbers, `bool`, and `Option` of these; \
            for types with `Display`: `format_args!(\"{{}}\", value)`"
)]
pub trait AttributeValue {
    /// Writes the attribute, or nothing. A custom type delegates to its text or number:
    /// `self.name.write_attribute(attribute, writer)`.
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>);
}

/// An attribute without its value. Only a value can write it.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Everything before the value, as in ` class="`.
    opening: &'static str,
    meaning: Meaning,
}

/// How a browser uses the value.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    Text,
    Url { is_image: bool },
}

impl Attribute {
    pub(crate) fn text(opening: &'static str) -> Self {
        Self { opening, meaning: Meaning::Text }
    }

    pub(crate) fn address(opening: &'static str, is_image: bool) -> Self {
        Self { opening, meaning: Meaning::Url { is_image } }
    }

    /// Writes the attribute with a value that needs no check of its URL.
    #[inline]
    fn write_unfiltered(self, value: &(impl Render + ?Sized), writer: &mut Writer<'_>) {
        writer.open_value(self.opening);
        value.render(writer);
        writer.close_value();
    }

    #[inline]
    fn write_text(self, text: &str, writer: &mut Writer<'_>) {
        match self.meaning {
            Meaning::Text => self.write_unfiltered(text, writer),
            Meaning::Url { is_image } => {
                self.write_address(is_image, writer, |filter| filter.text(text));
            }
        }
    }

    /// Writes the attribute with several values, separated by spaces.
    pub(crate) fn write_list<'v>(
        self,
        values: impl Iterator<Item = &'v str>,
        writer: &mut Writer<'_>,
    ) {
        let spaced = values
            .enumerate()
            .flat_map(|(place, value)| [if place == 0 { "" } else { " " }, value]);
        match self.meaning {
            Meaning::Text => {
                writer.constant(self.opening);
                spaced.for_each(|value| value.render(writer));
                writer.constant("\"");
            }
            Meaning::Url { is_image } => {
                self.write_address(is_image, writer, |filter| {
                    spaced.for_each(|value| filter.text(value));
                });
            }
        }
    }

    fn write_address(
        self,
        is_image: bool,
        writer: &mut Writer<'_>,
        fill: impl FnOnce(&mut UrlFilter<'_, '_>),
    ) {
        writer.open_value(self.opening);
        let mut filter = UrlFilter::new(writer, is_image);
        fill(&mut filter);
        filter.end();
        writer.close_value();
    }
}

impl AttributeValue for bool {
    #[inline]
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        if *self {
            attribute.write_unfiltered("", writer);
        }
    }
}

impl<T: AttributeValue> AttributeValue for Option<T> {
    #[inline]
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        if let Some(value) = self {
            value.write_attribute(attribute, writer);
        }
    }
}

impl AttributeValue for char {
    #[inline]
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        attribute.write_text(self.encode_utf8(&mut [0; 4]), writer);
    }
}

impl AttributeValue for fmt::Arguments<'_> {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        match attribute.meaning {
            Meaning::Text => attribute.write_unfiltered(self, writer),
            Meaning::Url { is_image } => attribute.write_address(is_image, writer, |filter| {
                // As in `Render`: only a `Display` that returns an error itself can fail.
                let _ = filter.write_fmt(*self);
            }),
        }
    }
}

macro_rules! attributes_by_reference {
    ($($pointer:ty)*) => {$(
        impl<T: AttributeValue + ?Sized> AttributeValue for $pointer {
            #[inline]
            fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
                (**self).write_attribute(attribute, writer);
            }
        }
    )*};
}

attributes_by_reference!(&T Box<T> Rc<T> Arc<T>);

macro_rules! attributes_as_text {
    ($($text:ty)*) => {$(
        impl AttributeValue for $text {
            #[inline]
            fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
                attribute.write_text(self, writer);
            }
        }
    )*};
}

attributes_as_text!(str String Cow<'_, str>);

macro_rules! attributes_as_numbers {
    ($($number:ty)*) => {$(
        impl AttributeValue for $number {
            #[inline]
            fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
                attribute.write_unfiltered(self, writer);
            }
        }
    )*};
}

attributes_as_numbers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

/// A value of an attribute that holds a URL, as `href` and `src`: any [`AttributeValue`], and
/// `raw(..)`, which is not checked.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a URL",
    note = "a URL is text, or `Option` of text; to compose one: `format_args!(\"/forum/{{}}\", name)`"
)]
pub trait UrlValue {
    /// Writes the attribute, or nothing.
    fn write_address(&self, attribute: Attribute, writer: &mut Writer<'_>);
}

impl<T: AttributeValue + ?Sized> UrlValue for T {
    #[inline]
    fn write_address(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self.write_attribute(attribute, writer);
    }
}

impl<T: AsRef<str>> UrlValue for Raw<T> {
    #[inline]
    fn write_address(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        attribute.write_unfiltered(self.0.as_ref(), writer);
    }
}

/// A value of a hole for a URL: a [`UrlValue`], or a function that returns one, such as a
/// service's name. The compiler infers `Kind`, which separates the two implementations.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a URL",
    label = "not text and not the name of a service",
    note = "a URL is text, or `Option` of text; to compose one: `format_args!(\"/forum/{{}}\", name)`"
)]
pub trait IntoUrl<Kind> {
    fn write(&self, attribute: Attribute, writer: &mut Writer<'_>);
}

/// The kind of values that are URLs.
#[derive(Debug)]
pub enum UrlKind {}

/// The kind of functions that return a URL.
#[derive(Debug)]
pub enum FunctionKind {}

#[diagnostic::do_not_recommend]
impl<T: UrlValue + ?Sized> IntoUrl<UrlKind> for T {
    #[inline]
    fn write(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self.write_address(attribute, writer);
    }
}

#[diagnostic::do_not_recommend]
impl<F: Fn() -> A, A: UrlValue> IntoUrl<FunctionKind> for F {
    fn write(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self().write_address(attribute, writer);
    }
}

/// A value of an attribute that a browser runs, applies as style or reads as a page: `raw(..)`, and
/// `Option` of it. It is still escaped, so that it cannot end the quoted value.
#[diagnostic::on_unimplemented(
    message = "text cannot be made safe in an event handler, in `style` or in `srcdoc`",
    label = "this would run as code or style",
    note = "put it into a `data-*` attribute and read it there, or choose among constants; \
            wrap it in `raw(..)` if it is trusted"
)]
pub trait CodeValue {
    /// Writes the attribute, or nothing. `opening` is everything before the value, as in
    /// ` onclick="`.
    fn write_code(&self, opening: &'static str, writer: &mut Writer<'_>);
}

impl<T: AsRef<str>> CodeValue for Raw<T> {
    #[inline]
    fn write_code(&self, opening: &'static str, writer: &mut Writer<'_>) {
        Attribute::text(opening).write_unfiltered(self.0.as_ref(), writer);
    }
}

impl<T: CodeValue> CodeValue for Option<T> {
    #[inline]
    fn write_code(&self, opening: &'static str, writer: &mut Writer<'_>) {
        if let Some(value) = self {
            value.write_code(opening, writer);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::raw;

    #[track_caller]
    fn check(value: impl AttributeValue, expected: &str) {
        let mut out = Vec::new();
        Writer::new(&mut out).attribute(" x=\"", &value);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn escapes_quotes_in_values() {
        check("\"><script>'&", " x=\"&quot;&gt;&lt;script&gt;&#39;&amp;\"");
    }

    #[test]
    fn writes_true_bare_and_omits_false() {
        check(true, " x=\"\"");
        check(false, "");
    }

    #[test]
    fn filters_urls_of_every_type() {
        let check = |value: &dyn AttributeValue, expected: &str| {
            let mut out = Vec::new();
            Writer::new(&mut out).link(" x=\"", value);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        let refused = " x=\"about:invalid#refused\"";
        check(&"javascript:x", refused);
        check(&Some(String::from("javascript:x")), refused);
        check(&Cow::Borrowed("javascript:x"), refused);
        check(&format_args!("{}{}:{}", "java", "script", 'x'), refused);
        check(&format_args!("/{}:{}", "javascript", 1), " x=\"/javascript:1\"");
        check(&7, " x=\"7\"");
        check(&None::<&str>, "");
    }

    #[test]
    fn accepts_raw_urls_and_code_but_escapes_quotes() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.link(" href=\"", &raw("javascript:go(\"a\")"));
        writer.code(" onclick=\"", &Some(raw("go('<b>')")));
        writer.code(" style=\"", &None::<Raw<&str>>);
        drop(writer);
        let expected = " href=\"javascript:go(&quot;a&quot;)\" onclick=\"go(&#39;&lt;b&gt;&#39;)\"";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn omits_none_and_writes_some() {
        check(None::<&str>, "");
        check(Some(&String::from("a")), " x=\"a\"");
        check(Some(-7), " x=\"-7\"");
        check(Some(false), "");
    }
}
