//! [`Class`]: classes of a style sheet as attribute values.

use core::fmt;

use crate::attribute::{Attribute, AttributeValue};
use crate::writer::Writer;

/// A class of a style sheet. `css!` defines a constant for each class of the sheet:
/// `<p class={style::card}>`. An array holds several classes, and an `Option` makes a class
/// conditional: `class={[Some(style::card), is_open.then_some(style::open)]}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(&'static str);

impl Class {
    /// A class by the name that the page contains, such as a class of a third-party style sheet.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The name that the page contains.
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
    fn separates_classes_with_spaces() {
        let (card, open) = (Class::new("card_x"), Class::new("open_x"));
        check(card, " class=\"card_x\"");
        check([card, open], " class=\"card_x open_x\"");
        check([card, open].as_slice(), " class=\"card_x open_x\"");
        assert_eq!(card.to_string(), card.name());
    }

    #[test]
    fn omits_absent_classes() {
        let open = |is_open: bool| is_open.then_some(Class::new("open"));
        check([open(false), Some(Class::new("a")), open(true)], " class=\"a open\"");
        check([open(false)], "");
        check(open(false), "");
        check::<[Class; 0]>([], "");
    }

    #[test]
    fn filters_classes_in_a_url_attribute() {
        let mut out = Vec::new();
        Writer::new(&mut out).link(" href=\"", &[Class::new("javascript:a"), Class::new("b")]);
        assert_eq!(out, b" href=\"about:invalid#refused\"");
    }
}
