//! Error responses for programs, as problem documents (RFC 9457).

use bine_http::Status;
use bine_store::{InvalidValue, ValueFault};
use serde_json::{Value, json};

use crate::languages::VisitorWords;
use crate::visitor_message::{MessageText, VisitorMessage};

/// An invalid argument of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArgumentError {
    /// The argument.
    pub name: String,
    /// The argument's name for people, if it has one.
    pub label: Option<String>,
    /// The end of a sentence that begins with the name.
    pub detail: MessageText,
}

impl ArgumentError {
    pub(crate) fn new(name: impl Into<String>, detail: impl Into<MessageText>) -> Self {
        Self { name: name.into(), label: None, detail: detail.into() }
    }

    pub(crate) fn of_column(invalid: &InvalidValue) -> Self {
        Self {
            label: invalid.label.as_deref().map(str::to_owned),
            ..Self::new(invalid.column.clone(), message_of(&invalid.fault))
        }
    }

    /// The argument's name for people, in the words for a visitor, if it has one.
    pub(crate) fn label_in(&self, words: &VisitorWords) -> Option<String> {
        let (name, label) = (self.name.clone(), self.label.clone()?);
        Some(words.say(&VisitorMessage::Label { name, label }))
    }

    /// Joins all errors in one sentence.
    pub(crate) fn sentence(all: &[Self], words: &VisitorWords) -> String {
        let each = all.iter().map(|own| {
            let subject = own.label_in(words).unwrap_or_else(|| format!("`{}`", own.name));
            let detail = words.text(&own.detail).into_owned();
            words.say(&VisitorMessage::Argument { subject, detail })
        });
        each.collect::<Vec<_>>().join("; ")
    }
}

/// The message for a value that a column does not accept. The store knows no visitors.
fn message_of(fault: &ValueFault) -> VisitorMessage {
    match *fault {
        ValueFault::Missing => VisitorMessage::Required {},
        ValueFault::Type(ref kind) => VisitorMessage::Type { expected: kind.to_string() },
        ValueFault::TextLength { least, most, actual } => {
            VisitorMessage::TextLength { least, most, actual }
        }
        ValueFault::BytesLength { least, most, actual } => {
            VisitorMessage::BytesLength { least, most, actual }
        }
        ValueFault::Range { least, most, actual } => VisitorMessage::Range { least, most, actual },
        ValueFault::Unreadable | ValueFault::UnknownColumn => VisitorMessage::TypeRefused {},
        ValueFault::Duplicate { ref with } if with.is_empty() => VisitorMessage::Taken {},
        ValueFault::Duplicate { ref with } => {
            VisitorMessage::TakenTogether { with: format!("`{}`", with.join("`, `")) }
        }
    }
}

/// Formats a failure as JSON. `causes` are for developers.
pub(crate) fn problem(
    status: Status,
    detail: Option<&str>,
    errors: &[ArgumentError],
    causes: &[String],
    words: &VisitorWords,
) -> Vec<u8> {
    let (title, code) = (words.title(status), status.code());
    let mut problem = json!({ "type": "about:blank", "title": title, "status": code });
    if let Some(detail) = detail {
        problem["detail"] = json!(detail);
    }
    if !errors.is_empty() {
        let each = errors.iter().map(|own| {
            let mut error = json!({ "name": own.name, "detail": words.text(&own.detail) });
            if let Some(label) = own.label_in(words) {
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
