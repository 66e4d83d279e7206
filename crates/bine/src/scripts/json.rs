//! Values of scripts as JSON, and back.

use bine_script::Value;
use serde_json::{Map, Value as Json};

/// The largest whole number below which each whole number has a float of its own.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The JSON of a value.
///
/// # Errors
///
/// The value has a part that JSON cannot hold.
pub(super) fn to_json(value: Value) -> Result<Json, String> {
    Ok(match value {
        Value::Undefined | Value::Null => Json::Null,
        Value::Bool(value) => value.into(),
        // A whole number is written as one: `1`, not `1.0`.
        Value::Number(number) if number.fract() == 0.0 && number.abs() <= EXACT => {
            (number as i64).into()
        }
        Value::Number(number) => number.into(),
        Value::Text(text) => text.into(),
        Value::Array(items) => {
            Json::Array(items.into_iter().map(to_json).collect::<Result<_, _>>()?)
        }
        Value::Object(entries) => Json::Object(object(entries)?),
        other => {
            return Err(format!("{} cannot pass as JSON: pass its text", other.kind()));
        }
    })
}

/// The JSON of the properties of an object.
pub(super) fn object(entries: Vec<(String, Value)>) -> Result<Map<String, Json>, String> {
    entries.into_iter().map(|(key, value)| Ok((key, to_json(value)?))).collect()
}

/// The value of JSON.
pub(super) fn from_json(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => number.as_f64().map_or(Value::Null, Value::Number),
        Json::String(text) => Value::Text(text),
        Json::Array(items) => Value::Array(items.into_iter().map(from_json).collect()),
        Json::Object(entries) => {
            let entries = entries.into_iter();
            Value::Object(entries.map(|(key, value)| (key, from_json(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn passes_json_there_and_back() {
        let all = json!({ "a": [1, -2.5, true, null, "text"], "b": { "c": {} } });
        assert_eq!(to_json(from_json(all.clone())), Ok(all));
    }

    #[test]
    fn writes_whole_numbers_without_a_fraction() {
        assert_eq!(to_json(Value::Number(3.0)).unwrap().to_string(), "3");
        assert_eq!(to_json(Value::Number(0.5)).unwrap().to_string(), "0.5");
        assert_eq!(to_json(Value::Number(1e300)).unwrap().to_string(), "1e+300");
    }

    #[test]
    fn names_what_json_cannot_hold() {
        let reason = to_json(Value::Array(vec![Value::Bytes(vec![1])])).unwrap_err();
        assert_eq!(reason, "bytes cannot pass as JSON: pass its text");
    }
}
