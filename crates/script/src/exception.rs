//! Exceptions of the engine as [`ScriptError`]s, without running code of the script.

use rquickjs::{Ctx, Value};

use crate::error::{Frame, Position, ScriptError};
use crate::quickjs::{self, Kind, Property};

/// Frames that are kept of a stack trace, and causes of an error.
const MAX_FRAMES: usize = 20;
const MAX_CAUSES: usize = 8;
/// Prototypes that are searched for a name.
const MAX_PROTOTYPES: usize = 8;
/// Bytes that are kept of a message.
const MAX_MESSAGE: usize = 4096;

/// Takes the pending exception.
pub(crate) fn take(ctx: &Ctx<'_>) -> ScriptError {
    of_value(&ctx.catch())
}

/// The error that a thrown value describes.
pub(crate) fn of_value(thrown: &Value<'_>) -> ScriptError {
    of_value_within(thrown, MAX_CAUSES)
}

fn of_value_within(thrown: &Value<'_>, causes: usize) -> ScriptError {
    if quickjs::kind(thrown) != Kind::Error {
        let message = crate::inspect::inspect(thrown);
        return ScriptError { message: shortened(message), ..ScriptError::default() };
    }
    let stack = match quickjs::property(thrown, "stack") {
        Ok(Property::Value(stack)) => quickjs::with_text(&stack, str::to_owned),
        _ => quickjs::stack_of(thrown),
    };
    let stack = stack.unwrap_or_default();
    let cause = match quickjs::property(thrown, "cause") {
        Ok(Property::Value(cause)) if causes > 0 => {
            Some(Box::new(of_value_within(&cause, causes - 1)))
        }
        _ => None,
    };
    ScriptError {
        name: text_property(thrown, "name").unwrap_or_else(|| "Error".to_owned()),
        message: shortened(text_property(thrown, "message").unwrap_or_default()),
        frames: stack.lines().filter_map(frame).take(MAX_FRAMES).collect(),
        cause,
        ..ScriptError::default()
    }
}

/// A text property of an object or of its prototypes. Getters do not run.
fn text_property(object: &Value<'_>, name: &str) -> Option<String> {
    let mut object = object.clone();
    for _ in 0..MAX_PROTOTYPES {
        if quickjs::kind(&object) == Kind::Proxy {
            return None;
        }
        match quickjs::property(&object, name) {
            Ok(Property::Value(value)) => return quickjs::with_text(&value, str::to_owned),
            Ok(Property::Accessor) => return None,
            Ok(Property::Missing) => object = object.as_object()?.get_prototype()?.into_value(),
            Err(quickjs::Thrown) => {
                object.ctx().catch();
                return None;
            }
        }
    }
    None
}

/// A line of the engine's stack trace: `    at name (file:line:column)`.
fn frame(line: &str) -> Option<Frame> {
    let text = line.trim().strip_prefix("at ")?;
    let (function, place) = match text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
        Some((function, place)) => (function, place),
        None => ("", text),
    };
    let function = if function == "<anonymous>" { "" } else { function };
    Some(Frame { function: function.to_owned(), position: position(place) })
}

fn position(place: &str) -> Option<Position> {
    let (rest, column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    let (line, column) = (line.parse().ok()?, column.parse().ok()?);
    Some(Position { file: file.to_owned(), line, column })
}

fn shortened(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    message
}
