//! Decides how classes of a style sheet stand in an attribute: one, or several.

use core::fmt;

use crate::attribute::{Attribute, AttributeValue};
use crate::writer::Writer;

/// A class of a style sheet. `css!` makes one of each, under the name that it has there:
/// `<p class={style::card}>`. Several stand in an array, and those that are there at times in options:
/// `class={[Some(style::card), is_open.then_some(style::open)]}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(&'static str);

impl Class {
    /// A class by the name that is written to the page, such as one of somebody else's sheet.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The name that is written to the page.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.0)
    }
}

impl AttributeValue for Class {
    #[inline]
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self.0.write_attribute(attribute, writer);
    }
}

impl<C: Into<Option<Class>> + Copy> AttributeValue for [C] {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        let names = || self.iter().filter_map(|&class| class.into()).map(Class::name);
        if names().next().is_some() {
            attribute.write_list(names(), writer);
        }
    }
}

impl<C: Into<Option<Class>> + Copy, const N: usize> AttributeValue for [C; N] {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self.as_slice().write_attribute(attribute, writer);
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString as _};
    use alloc::vec::Vec;

    use super::*;

    #[track_caller]
    fn check<V: AttributeValue>(value: V, expected: &str) {
        let mut out = Vec::new();
        Writer::new(&mut out).attribute(" class=\"", &value);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn several_classes_stand_beside_each_other() {
        let (card, open) = (Class::new("card_x"), Class::new("open_x"));
        check(card, " class=\"card_x\"");
        check([card, open], " class=\"card_x open_x\"");
        check([card, open].as_slice(), " class=\"card_x open_x\"");
        assert_eq!(card.to_string(), card.name());
    }

    #[test]
    fn a_class_that_is_not_there_now_leaves_no_trace() {
        let open = |is_open: bool| is_open.then_some(Class::new("open"));
        check([open(false), Some(Class::new("a")), open(true)], " class=\"a open\"");
        check([open(false)], "");
        check(open(false), "");
        check::<[Class; 0]>([], "");
    }

    #[test]
    fn a_class_is_text_to_an_address() {
        let mut out = Vec::new();
        Writer::new(&mut out).link(" href=\"", &[Class::new("javascript:a"), Class::new("b")]);
        assert_eq!(out, b" href=\"about:invalid#refused\"");
    }
}
