//! Error responses for programs, as problem documents (RFC 9457).

use bine_http::Status;
use bine_store::InvalidValue;
use serde_json::{Value, json};

/// An invalid argument of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArgumentError {
    /// The argument.
    pub name: String,
    /// The argument's name for people, if it has one.
    pub label: Option<String>,
    /// The end of a sentence that begins with the name.
    pub detail: String,
}

impl ArgumentError {
    pub(crate) fn new(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), label: None, detail: detail.into() }
    }

    pub(crate) fn of_column(invalid: &InvalidValue) -> Self {
        Self {
            label: invalid.label.as_deref().map(str::to_owned),
            ..Self::new(invalid.column.clone(), invalid.fault.to_string())
        }
    }

    /// Joins all errors in one sentence.
    pub(crate) fn sentence(all: &[Self]) -> String {
        let each = all.iter().map(|Self { name, label, detail }| match label {
            Some(label) => format!("{label} {detail}"),
            None => format!("`{name}` {detail}"),
        });
        each.collect::<Vec<_>>().join("; ")
    }
}

/// Formats a failure as JSON. `causes` are for developers.
pub(crate) fn problem(
    status: Status,
    detail: Option<&str>,
    errors: &[ArgumentError],
    causes: &[String],
) -> Vec<u8> {
    let (title, code) = (status.reason(), status.code());
    let mut problem = json!({ "type": "about:blank", "title": title, "status": code });
    if let Some(detail) = detail {
        problem["detail"] = json!(detail);
    }
    if !errors.is_empty() {
        let each = errors.iter().map(|ArgumentError { name, label, detail }| {
            let mut error = json!({ "name": name, "detail": detail });
            if let Some(label) = label {
                error["label"] = json!(label);
            }
            error
        });
        problem["errors"] = Value::Array(each.collect());
    }
    if !causes.is_empty() {
        problem["causes"] = json!(causes);
    }
    problem.to_string().into_bytes()
}
