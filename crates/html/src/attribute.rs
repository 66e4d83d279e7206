//! Decides what may stand in an attribute hole, and when the attribute is left out.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use crate::render::Render;
use crate::writer::Writer;

/// What may stand in an attribute hole `name={expression}`.
///
/// `true` writes the bare attribute (as `disabled=""`, which HTML and XHTML read alike); `false` and `None`
/// leave it out. Apart from [`Render`], because a type may render as markup, which no attribute can hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an attribute's value",
    note = "an attribute takes text, numbers, `bool`, and `Option` of these"
)]
pub trait AttributeValue {
    /// Writes the attribute, or nothing. `opening` is all that comes before the value, as in ` class="`.
    fn write_attribute(&self, opening: &'static str, writer: &mut Writer<'_>);
}

impl AttributeValue for bool {
    #[inline]
    fn write_attribute(&self, opening: &'static str, writer: &mut Writer<'_>) {
        if *self {
            writer.constant(opening);
            writer.constant("\"");
        }
    }
}

impl<T: AttributeValue> AttributeValue for Option<T> {
    #[inline]
    fn write_attribute(&self, opening: &'static str, writer: &mut Writer<'_>) {
        if let Some(value) = self {
            value.write_attribute(opening, writer);
        }
    }
}

impl<T: AttributeValue + ?Sized> AttributeValue for &T {
    #[inline]
    fn write_attribute(&self, opening: &'static str, writer: &mut Writer<'_>) {
        (**self).write_attribute(opening, writer);
    }
}

impl<T: AttributeValue + ?Sized> AttributeValue for Box<T> {
    #[inline]
    fn write_attribute(&self, opening: &'static str, writer: &mut Writer<'_>) {
        (**self).write_attribute(opening, writer);
    }
}

macro_rules! attributes_as_text {
    ($($text:ty)*) => {$(
        impl AttributeValue for $text {
            #[inline]
            fn write_attribute(&self, opening: &'static str, writer: &mut Writer<'_>) {
                writer.constant(opening);
                self.render(writer);
                writer.constant("\"");
            }
        }
    )*};
}

attributes_as_text! {
    str String Cow<'_, str> char fmt::Arguments<'_>
    i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

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
    fn none_is_absent_and_some_is_its_value() {
        check(None::<&str>, "");
        check(Some(&String::from("a")), " x=\"a\"");
        check(Some(-7), " x=\"-7\"");
        check(Some(false), "");
    }
}
