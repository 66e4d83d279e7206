//! The functions of scripts for row templates.

use std::rc::Rc;

use rquickjs::{Ctx, Value};

use crate::host_error::HostError;
use crate::quickjs::{self, Arguments, Callback, Kind, Property, Thrown};
use crate::row_template::{Captured, RowTemplate, RowValue};
use crate::state::State;
use crate::template::{KEPT_BUFFER, MAX_BYTES, MAX_TEMPLATES};

/// The function `$row(template, values)` of scripts: a row template. A value is the name of a column,
/// or the position of a value that does not depend on the row.
pub(crate) struct NewRowTemplate {
    pub(crate) state: Rc<State>,
}

/// The function `$fillRows(row, list, prototype, ...captured)` of scripts: the markup of an array of
/// plain objects, or undefined if only the callback can show it. `prototype` is `Array.prototype`.
pub(crate) struct FillRows {
    pub(crate) state: Rc<State>,
}

/// The properties by which an array could change the meaning of `map`.
const OF_ARRAY: [&str; 2] = ["map", "constructor"];

impl Callback for NewRowTemplate {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let (ctx, state) = (arguments.ctx(), &self.state);
        let refuse = |message: &str| state.throw(ctx, &HostError::Type(message.to_owned()));
        let index = arguments.at(0).as_int().and_then(|index| usize::try_from(index).ok());
        let template = index.and_then(|index| state.templates.list.borrow().get(index).cloned());
        let values = read_values(&arguments.at(1));
        let (Some(template), Some((columns, values))) = (template, values) else {
            return Err(refuse("a row template has a template and an array of values"));
        };
        let bytes = columns.iter().map(|column| column.len() + 128).sum::<usize>() + 128;
        let sum = state.templates.bytes.get().saturating_add(bytes);
        let mut rows = state.row_templates.borrow_mut();
        if rows.len() >= MAX_TEMPLATES || sum > MAX_BYTES {
            return Err(state.throw(ctx, &HostError::Range("too many templates".to_owned())));
        }
        let Some(row) = RowTemplate::new(ctx, rows.len(), &template, columns, values) else {
            return Err(refuse("a row template has a value for each hole"));
        };
        rows.push(Rc::new(row));
        state.templates.bytes.set(sum);
        Ok(Value::new_number(ctx.clone(), (rows.len() - 1) as f64))
    }
}

/// The columns without repetition, and the value of each hole.
fn read_values(array: &Value<'_>) -> Option<(Vec<String>, Vec<RowValue>)> {
    if quickjs::kind(array) != Kind::Array {
        return None;
    }
    let (mut columns, mut values): (Vec<String>, Vec<RowValue>) = Default::default();
    for index in 0..u32::try_from(quickjs::length(array).ok()?).ok()? {
        let Ok(Property::Value(value)) = quickjs::element(array, index) else { return None };
        values.push(match value.as_int() {
            Some(at) => RowValue::Captured(usize::try_from(at).ok()?),
            None => {
                let name = quickjs::with_text(&value, str::to_owned)?;
                let known = columns.iter().position(|column| *column == name);
                RowValue::Column(known.unwrap_or_else(|| {
                    columns.push(name);
                    columns.len() - 1
                }))
            }
        });
    }
    Some((columns, values))
}

impl Callback for FillRows {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let (ctx, state) = (arguments.ctx(), &self.state);
        let undefined = || Ok(Value::new_undefined(ctx.clone()));
        let list = arguments.at(1);
        let Some(row) = state.row_template(&arguments.at(0)) else { return undefined() };
        if !is_ordinary_array(&list, &arguments.at(2)) {
            return undefined();
        }
        let classes = state.classes();
        let captured = Captured { arguments, first: 3, holes: state.holes() };
        let mut out = state.templates.buffer.take();
        let result = match row.write_objects(&list, &captured, classes.plain, &mut out) {
            Ok(()) => classes.markup.create(ctx, &out),
            Err(_) => {
                forget_exception(ctx);
                undefined()
            }
        };
        if out.capacity() <= KEPT_BUFFER {
            out.clear();
            state.templates.buffer.set(out);
        }
        result
    }
}

/// Whether `map` of a list is that of its prototype, and makes an array.
fn is_ordinary_array(list: &Value<'_>, prototype: &Value<'_>) -> bool {
    if quickjs::kind(list) != Kind::Array {
        return false;
    }
    let own = list.as_object().and_then(rquickjs::Object::get_prototype);
    own.is_some_and(|own| quickjs::identity(own.as_value()) == quickjs::identity(prototype))
        && OF_ARRAY
            .iter()
            .all(|name| matches!(quickjs::property(list, name), Ok(Property::Missing)))
}

/// Memory may have been exhausted: the callback finds that too.
fn forget_exception(ctx: &Ctx<'_>) {
    if ctx.has_exception() {
        ctx.catch();
    }
}
