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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_ids_and_times_as_their_text() {
        let (row, time) = (RowId::from_number(9), Time(1_500_000));
        let id = Id::<()>::of(row);
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        row.render(&mut writer);
        id.render(&mut writer);
        time.render(&mut writer);
        writer.attribute(" id=\"", &id);
        writer.attribute(" title=\"", &time);
        drop(writer);
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text, format!("{row}{row}{time} id=\"{row}\" title=\"{time}\""));
    }
}
