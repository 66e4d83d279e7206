//! Ids and times in pages: as text, and as values of attributes and URLs.

use bine_html::{Attribute, AttributeValue, Render, Writer};

use crate::id::{Id, RowId};
use crate::time::Time;

impl Render for RowId {
    fn render(&self, writer: &mut Writer<'_>) {
        self.write_to(&mut [0; Self::LENGTH]).render(writer);
    }
}

impl AttributeValue for RowId {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self.write_to(&mut [0; Self::LENGTH]).write_attribute(attribute, writer);
    }
}

impl<T> Render for Id<T> {
    fn render(&self, writer: &mut Writer<'_>) {
        self.row().render(writer);
    }
}

impl<T> AttributeValue for Id<T> {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self.row().write_attribute(attribute, writer);
    }
}

/// As in RFC 3339, in UTC.
impl Render for Time {
    fn render(&self, writer: &mut Writer<'_>) {
        format_args!("{self}").render(writer);
    }
}

impl AttributeValue for Time {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        format_args!("{self}").write_attribute(attribute, writer);
    }
}
