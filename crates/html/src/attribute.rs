//! Decides what may stand in an attribute hole, and when the attribute is left out.
//!
//! `html!` knows from its name what a browser makes of an attribute's value, and calls one of three methods of the
//! writer: for text, for an address, and for what no escape makes safe.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::{self, Write as _};

use crate::address::Screen;
use crate::raw::Raw;
use crate::render::Render;
use crate::writer::Writer;

/// What may stand in an attribute hole `name={expression}`.
///
/// `true` writes the bare attribute (as `disabled=""`, which HTML and XHTML read alike); `false` and `None`
/// leave it out. Apart from [`Render`], because a type may render as markup, which no attribute can hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an attribute's value",
    note = "an attribute takes text, numbers, `bool`, and `Option` of these; \
            what can be displayed: `format_args!(\"{{}}\", value)`"
)]
pub trait AttributeValue {
    /// Writes the attribute, or nothing. A type of one's own does so by the text or number that it stands for:
    /// `self.name.write_attribute(attribute, writer)`.
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>);
}

/// An attribute that waits for its value. Only a value can write it.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// All that comes before the value, as in ` class="`.
    opening: &'static str,
    meaning: Meaning,
}

/// What a browser makes of the value.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    Text,
    Address { is_image: bool },
}

impl Attribute {
    pub(crate) fn text(opening: &'static str) -> Self {
        Self { opening, meaning: Meaning::Text }
    }

    pub(crate) fn address(opening: &'static str, is_image: bool) -> Self {
        Self { opening, meaning: Meaning::Address { is_image } }
    }

    /// Writes the attribute with a value that is never a harmful address.
    #[inline]
    fn write_harmless(self, value: &(impl Render + ?Sized), writer: &mut Writer<'_>) {
        writer.open_value(self.opening);
        value.render(writer);
        writer.close_value();
    }

    #[inline]
    fn write_text(self, text: &str, writer: &mut Writer<'_>) {
        match self.meaning {
            Meaning::Text => self.write_harmless(text, writer),
            Meaning::Address { is_image } => {
                self.write_address(is_image, writer, |screen| screen.text(text));
            }
        }
    }

    /// Writes the attribute with several values, a blank between two of them.
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
            Meaning::Address { is_image } => {
                self.write_address(is_image, writer, |screen| {
                    spaced.for_each(|value| screen.text(value));
                });
            }
        }
    }

    fn write_address(
        self,
        is_image: bool,
        writer: &mut Writer<'_>,
        fill: impl FnOnce(&mut Screen<'_, '_>),
    ) {
        writer.open_value(self.opening);
        let mut screen = Screen::new(writer, is_image);
        fill(&mut screen);
        screen.end();
        writer.close_value();
    }
}

impl AttributeValue for bool {
    #[inline]
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        if *self {
            attribute.write_harmless("", writer);
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
            Meaning::Text => attribute.write_harmless(self, writer),
            Meaning::Address { is_image } => attribute.write_address(is_image, writer, |screen| {
                // As for `Render`: only a `Display` that reports an error of its own can fail.
                let _ = screen.write_fmt(*self);
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
                attribute.write_harmless(self, writer);
            }
        }
    )*};
}

attributes_as_numbers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

/// What may stand in the hole of an attribute that holds an address, as `href` and `src` do: what any attribute
/// takes, and `raw(..)`, which is not looked at.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an address",
    note = "an address is text, or `Option` of it; put together: `format_args!(\"/forum/{{}}\", name)`"
)]
pub trait AddressValue {
    /// Writes the attribute, or nothing.
    fn write_address(&self, attribute: Attribute, writer: &mut Writer<'_>);
}

impl<T: AttributeValue + ?Sized> AddressValue for T {
    #[inline]
    fn write_address(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self.write_attribute(attribute, writer);
    }
}

impl<T: AsRef<str>> AddressValue for Raw<T> {
    #[inline]
    fn write_address(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        attribute.write_harmless(self.0.as_ref(), writer);
    }
}

/// What a hole for an address takes: an [`AddressValue`], or the name of a function that makes one, as a service has.
/// `Kind` keeps the two apart for the compiler, which finds it by itself.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an address",
    label = "no text, and not the name of a service",
    note = "an address is text, or `Option` of it; put together: `format_args!(\"/forum/{{}}\", name)`"
)]
pub trait Address<Kind> {
    fn write(&self, attribute: Attribute, writer: &mut Writer<'_>);
}

/// The kind of what is an address.
#[derive(Debug)]
pub enum Plain {}

/// The kind of a function that makes one.
#[derive(Debug)]
pub enum Named {}

#[diagnostic::do_not_recommend]
impl<T: AddressValue + ?Sized> Address<Plain> for T {
    #[inline]
    fn write(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self.write_address(attribute, writer);
    }
}

#[diagnostic::do_not_recommend]
impl<F: Fn() -> A, A: AddressValue> Address<Named> for F {
    fn write(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self().write_address(attribute, writer);
    }
}

/// What may stand in the hole of an attribute that a browser runs, draws by or reads as a page: `raw(..)` alone,
/// and `Option` of it. It is still escaped, so that it cannot leave its quotes.
#[diagnostic::on_unimplemented(
    message = "text cannot be made safe in an event handler, in `style` or in `srcdoc`",
    label = "this would run as code or style",
    note = "give it to a `data-*` attribute and read it from there, or choose among constant values; \
            wrap it in `raw(..)` if every byte of it is yours"
)]
pub trait CodeValue {
    /// Writes the attribute, or nothing. `opening` is all that comes before the value, as in ` onclick="`.
    fn write_code(&self, opening: &'static str, writer: &mut Writer<'_>);
}

impl<T: AsRef<str>> CodeValue for Raw<T> {
    #[inline]
    fn write_code(&self, opening: &'static str, writer: &mut Writer<'_>) {
        Attribute::text(opening).write_harmless(self.0.as_ref(), writer);
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
    fn text_cannot_leave_its_quotes() {
        check("\"><script>'&", " x=\"&quot;&gt;&lt;script&gt;&#39;&amp;\"");
    }

    #[test]
    fn true_is_bare_and_false_is_absent() {
        check(true, " x=\"\"");
        check(false, "");
    }

    #[test]
    fn an_address_is_looked_at_in_whatever_it_comes() {
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
    fn raw_is_any_address_and_any_code_but_never_leaves_its_quotes() {
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
    fn none_is_absent_and_some_is_its_value() {
        check(None::<&str>, "");
        check(Some(&String::from("a")), " x=\"a\"");
        check(Some(-7), " x=\"-7\"");
        check(Some(false), "");
    }
}
