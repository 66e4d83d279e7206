//! [`Render`]: the values that a text hole accepts, and how they are written.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::{self, Write as _};

use crate::tree::Builder;
use crate::writer::Writer;

/// A value that is text in a hole `{expression}`. Types that are markup implement
/// [`Show`](crate::Show) instead.
///
/// `bool` does not implement it on purpose: a `bool` in text is almost always a forgotten `if`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not allowed here: only text is",
    label = "not text and no number",
    note = "for types with `Display`: `format_args!(\"{{}}\", value)`; or implement `Render` for a type of your own"
)]
pub trait Render {
    /// Writes the value to a text position of the page, escaped.
    fn render(&self, writer: &mut Writer<'_>);

    /// Adds the value to a tree: its nodes if it has any, otherwise the markup that it writes.
    #[doc(hidden)]
    fn graft(&self, builder: &mut Builder) {
        builder.written(|writer| self.render(writer));
    }
}

impl Render for str {
    #[inline]
    fn render(&self, writer: &mut Writer<'_>) {
        writer.text(self);
    }
}

impl Render for String {
    #[inline]
    fn render(&self, writer: &mut Writer<'_>) {
        writer.text(self);
    }
}

impl Render for Cow<'_, str> {
    #[inline]
    fn render(&self, writer: &mut Writer<'_>) {
        writer.text(self);
    }
}

impl Render for char {
    #[inline]
    fn render(&self, writer: &mut Writer<'_>) {
        writer.text(self.encode_utf8(&mut [0; 4]));
    }
}

impl Render for fmt::Arguments<'_> {
    fn render(&self, writer: &mut Writer<'_>) {
        // A `Writer` never fails. Only a `Display` that returns an error itself can, and then the
        // page shows the text written up to that point.
        let _ = writer.write_fmt(*self);
    }
}

macro_rules! render_by_reference {
    ($($pointer:ty)*) => {$(
        impl<T: Render + ?Sized> Render for $pointer {
            #[inline]
            fn render(&self, writer: &mut Writer<'_>) {
                (**self).render(writer);
            }

            fn graft(&self, builder: &mut Builder) {
                (**self).graft(builder);
            }
        }
    )*};
}

render_by_reference!(&T &mut T Box<T> Rc<T> Arc<T>);

impl<T: Render> Render for Option<T> {
    #[inline]
    fn render(&self, writer: &mut Writer<'_>) {
        if let Some(value) = self {
            value.render(writer);
        }
    }

    fn graft(&self, builder: &mut Builder) {
        if let Some(value) = self {
            value.graft(builder);
        }
    }
}

macro_rules! render_integers {
    ($($integer:ty)*) => {$(
        impl Render for $integer {
            #[inline]
            fn render(&self, writer: &mut Writer<'_>) {
                #[allow(unused_comparisons, reason = "the macro also serves the unsigned types")]
                let negative = *self < 0;
                match u64::try_from(self.abs_diff(0)) {
                    Ok(magnitude) => writer.decimal(negative, magnitude),
                    // Beyond 64 bits speed does not matter.
                    Err(_) => format_args!("{self}").render(writer),
                }
            }
        }
    )*};
}

render_integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

macro_rules! render_floats {
    ($($float:ty)*) => {$(
        impl Render for $float {
            fn render(&self, writer: &mut Writer<'_>) {
                format_args!("{self}").render(writer);
            }
        }
    )*};
}

render_floats!(f32 f64);

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn rendered(value: impl Render) -> String {
        let mut out = Vec::new();
        value.render(&mut Writer::new(&mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_every_text_type() {
        assert_eq!(rendered("<"), "&lt;");
        assert_eq!(rendered(String::from("<")), "&lt;");
        assert_eq!(rendered(Cow::Borrowed("<")), "&lt;");
        assert_eq!(rendered('<'), "&lt;");
        assert_eq!(rendered(Some(Box::new("<"))), "&lt;");
        assert_eq!(rendered(format_args!("{:?}", "<")), "&quot;&lt;&quot;");
    }

    #[test]
    fn writes_extreme_integers() {
        assert_eq!(rendered(i8::MIN), "-128");
        assert_eq!(rendered(i64::MIN), i64::MIN.to_string());
        assert_eq!(rendered(u64::MAX), u64::MAX.to_string());
        assert_eq!(rendered(i128::MIN), i128::MIN.to_string());
        assert_eq!(rendered(u128::MAX), u128::MAX.to_string());
    }

    #[test]
    fn writes_floats_as_display_does() {
        assert_eq!(rendered(0.1_f64), "0.1");
        assert_eq!(rendered(-2.5_f32), "-2.5");
    }

    proptest! {
        #[test]
        fn writes_integers_as_display_does(signed: i64, unsigned: u64, small: i16, wide: i128) {
            prop_assert_eq!(rendered(signed), signed.to_string());
            prop_assert_eq!(rendered(unsigned), unsigned.to_string());
            prop_assert_eq!(rendered(small), small.to_string());
            prop_assert_eq!(rendered(wide), wide.to_string());
        }

        #[test]
        fn writes_integers_of_every_length_as_display_does(value: u64, shift in 0_u32..64) {
            prop_assert_eq!(rendered(value >> shift), (value >> shift).to_string());
        }
    }
}
