//! Messages at the fields of a form, as values of scripts: the name of the field, the message, and the
//! name for people if there is one.

use bine_script::Value;

use crate::service::ArgumentError;

/// The message in a value, if it is one.
pub(super) fn read(error: &Value) -> Option<ArgumentError> {
    let Value::Array(parts) = error else { return None };
    let mut texts = parts.iter().map(Value::as_text);
    let (name, detail) = (texts.next()??, texts.next()??);
    let label = texts.next().flatten().map(str::to_owned);
    Some(ArgumentError { label, ..ArgumentError::new(name, detail.to_owned()) })
}

/// The value of a message.
pub(super) fn written(error: &ArgumentError) -> Value {
    let texts = [&*error.name, &*error.detail].into_iter().chain(error.label.as_deref());
    Value::Array(texts.map(Value::from).collect())
}
