//! Row templates: a list of rows becomes markup without a call of the script for each row.
//!
//! A compiler finds callbacks such as `(row) => <li id={row.id}>{row.text}</li>`, whose markup
//! depends only on columns of the row and on values that are known before the first row. It registers
//! the template of the markup with the source of each hole, `$row(template, values)`, and passes the
//! row template together with the callback. Whatever the row template cannot write in the same way
//! is left to the callback, which has not run before: so there is no other difference than the time.

use std::cell::Cell;
use std::rc::Rc;

use bine_vocabulary::Context;
use rquickjs::{Ctx, Value};

use crate::markup::Markup;
use crate::quickjs::{self, Arguments, Kind, Property, RecordLayout};
use crate::template::{
    Attribute, Hole, Holes, Refused, Template, TreeHoles, check_length, escape, write_hole,
    write_integer, write_link, write_number,
};

/// Integers up to here have their own digits: 2^53.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
/// The most bytes that are reserved for a list before it is written.
const MAX_RESERVED: usize = 64 << 10;

/// The markup of one row.
pub(crate) struct RowTemplate {
    /// Different for each row template of the script.
    number: usize,
    template: Rc<Template>,
    /// For each hole.
    values: Vec<RowValue>,
    columns: Vec<String>,
    /// Reads the columns of objects.
    layout: RecordLayout,
    /// The bytes of the last list.
    last_size: Cell<usize>,
}

/// The value of a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowValue {
    /// The column at this position.
    Column(usize),
    /// The value at this position among those that do not depend on the row.
    Captured(usize),
}

/// A value of a row, as the host has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowCell<'r> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(&'r str),
}

/// A value that only the script itself can show, or refuse with its own error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwritten;

/// A row of the host, which makes a cell only where the template shows it.
pub trait RowSource {
    /// The cell of the column at this position of [`RowWriter::columns`].
    ///
    /// # Errors
    ///
    /// A [`RowCell`] cannot hold the value.
    fn cell(&mut self, column: usize) -> Result<RowCell<'_>, Unwritten>;
}

/// Writes rows of the host by a row template of the script. See
/// [`HostCall::row_writer`](crate::HostCall::row_writer).
pub struct RowWriter<'c, 'js> {
    row: Rc<RowTemplate>,
    captured: Captured<'c, 'js>,
    out: Vec<u8>,
}

/// The values that do not depend on the row, and the bounds of the engine.
pub(crate) struct Captured<'c, 'js> {
    pub(crate) arguments: &'c Arguments<'c, 'js>,
    /// The argument that is the first of these values.
    pub(crate) first: usize,
    pub(crate) holes: Holes<'c>,
}

/// The callback writes trees: their nodes may run functions of the script.
struct RefusedTrees<'t>(&'t dyn TreeHoles);

impl TreeHoles for RefusedTrees<'_> {
    fn is_tree(&self, value: &Value<'_>) -> bool {
        self.0.is_tree(value)
    }

    fn write(&self, _tree: &Value<'_>, _out: &mut Vec<u8>) -> Result<(), Refused> {
        Err(Refused("the callback shows trees".to_owned()))
    }
}

impl RowTemplate {
    /// `None`: the values do not fit the holes, or memory is exhausted.
    pub(crate) fn new(
        ctx: &Ctx<'_>,
        number: usize,
        template: &Rc<Template>,
        columns: Vec<String>,
        values: Vec<RowValue>,
    ) -> Option<Self> {
        let has_head = template.holes.iter().any(|(hole, _)| *hole == Hole::HeadEnd);
        if has_head || template.holes.len() != values.len() {
            return None;
        }
        let layout = RecordLayout::new(ctx, &columns).ok()?;
        let template = Rc::clone(template);
        Some(Self { number, template, values, columns, layout, last_size: Cell::default() })
    }

    /// Writes one row.
    fn write(
        &self,
        captured: &Captured<'_, '_>,
        out: &mut Vec<u8>,
        mut write_column: impl FnMut(&Hole, usize, &mut Vec<u8>) -> Result<(), Unwritten>,
    ) -> Result<(), Unwritten> {
        out.extend_from_slice(self.template.first.as_bytes());
        for ((hole, piece), value) in self.template.holes.iter().zip(&self.values) {
            match *value {
                RowValue::Column(column) => write_column(hole, column, out)?,
                RowValue::Captured(at) => {
                    let value = captured.arguments.at(captured.first + at);
                    write_value(hole, &value, captured.holes, out)?;
                }
            }
            out.extend_from_slice(piece.as_bytes());
        }
        check_length(captured.holes, out).map_err(|_| Unwritten)
    }

    /// Writes the objects of an array of the script. No code of the script runs.
    pub(crate) fn write_objects<'js>(
        &self,
        list: &Value<'js>,
        captured: &Captured<'_, 'js>,
        plain_class: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritten> {
        let length = quickjs::length(list).map_err(|_| Unwritten)?;
        for index in 0..u32::try_from(length).map_err(|_| Unwritten)? {
            let Ok(Property::Value(object)) = quickjs::element(list, index) else {
                return Err(Unwritten);
            };
            if quickjs::kind(&object) != Kind::Object || quickjs::class_id(&object) != plain_class {
                return Err(Unwritten);
            }
            self.write(captured, out, |hole, column, out| {
                let Ok(Property::Value(value)) = self.layout.read(&object, column) else {
                    return Err(Unwritten);
                };
                write_value(hole, &value, captured.holes, out)
            })?;
        }
        Ok(())
    }
}

impl<'c, 'js> RowWriter<'c, 'js> {
    pub(crate) fn new(row: Rc<RowTemplate>, captured: Captured<'c, 'js>) -> Self {
        let out = Vec::with_capacity(row.last_size.get().min(MAX_RESERVED));
        Self { row, captured, out }
    }

    /// The number of the row template in the script, if its markup depends on nothing but the rows:
    /// equal rows then have equal markup in each call of the script.
    pub fn number(&self) -> Option<usize> {
        let is_of_row = |value: &RowValue| matches!(value, RowValue::Column(_));
        self.row.values.iter().all(is_of_row).then_some(self.row.number)
    }

    /// The names of the columns that the template shows.
    pub fn columns(&self) -> &[String] {
        &self.row.columns
    }

    /// Writes the next row.
    ///
    /// # Errors
    ///
    /// The script must show the rows itself: all of them, by its callback.
    pub fn write(&mut self, row: &mut impl RowSource) -> Result<(), Unwritten> {
        let ctx = self.captured.arguments.ctx();
        self.row.write(&self.captured, &mut self.out, |hole, column, out| {
            write_cell(ctx, hole, row.cell(column)?, out)
        })
    }

    /// The markup of all rows.
    pub fn finish(self) -> Markup {
        self.row.last_size.set(self.out.len());
        Markup::from_vec(self.out)
    }
}

/// Writes a value of the script. No code of the script runs.
fn write_value(
    hole: &Hole,
    value: &Value<'_>,
    holes: Holes<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Unwritten> {
    let holes = Holes { trees: &RefusedTrees(holes.trees), ..holes };
    write_hole(hole, value, holes, out).map_err(|_| Unwritten)
}

/// Writes a cell into a hole, as [`write_hole`] writes a value of the script.
fn write_cell(
    ctx: &Ctx<'_>,
    hole: &Hole,
    cell: RowCell<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Unwritten> {
    match hole {
        Hole::Content | Hole::Text => match cell {
            RowCell::Text(text) => escape(text, out),
            RowCell::Null | RowCell::Bool(_) => {}
            RowCell::Number(number) => write_finite(ctx, number, out)?,
        },
        Hole::Attribute(attribute) | Hole::Action(attribute) => {
            write_attribute(ctx, attribute, cell, out)?;
        }
        Hole::Spread { .. } if matches!(cell, RowCell::Null | RowCell::Bool(_)) => {}
        Hole::RawText | Hole::Spread { .. } | Hole::Captured(_) | Hole::HeadEnd => {
            return Err(Unwritten);
        }
    }
    Ok(())
}

fn write_attribute(
    ctx: &Ctx<'_>,
    attribute: &Attribute,
    cell: RowCell<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Unwritten> {
    if matches!(cell, RowCell::Null | RowCell::Bool(false)) {
        return Ok(());
    }
    out.extend_from_slice(attribute.opening.as_bytes());
    match (attribute.context, cell) {
        (_, RowCell::Bool(_) | RowCell::Null) => {}
        (Context::Code, _) => return Err(Unwritten),
        (Context::Text, RowCell::Text(text)) => escape(text, out),
        (context, RowCell::Text(text)) => write_link(text, context == Context::Image, out),
        (_, RowCell::Number(number)) => write_finite(ctx, number, out)?,
    }
    out.push(b'"');
    Ok(())
}

/// Writes a number as JavaScript does. One that is not finite cannot pass to a script.
fn write_finite(ctx: &Ctx<'_>, number: f64, out: &mut Vec<u8>) -> Result<(), Unwritten> {
    if !number.is_finite() {
        return Err(Unwritten);
    }
    if number.fract() == 0.0 && number.abs() < MAX_EXACT {
        // An integer of this size fits, and -0 passes as 0.
        write_integer(number as i64, out);
    } else {
        write_number(&Value::new_number(ctx.clone(), number), out);
    }
    Ok(())
}
