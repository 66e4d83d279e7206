//! The visitor of a tab.

use serde_json::{Value, json};

use crate::text::Text;

/// The visitor of a tab.
#[derive(Clone)]
pub(super) struct PresentVisitor {
    /// The name that other visitors see.
    pub(super) name: Text,
    pub(super) person: Option<Person>,
}

/// The identity that two tabs of the same person share.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Person {
    /// A user, in any number of login sessions.
    User(Text),
    /// The id of a session without a login.
    Session([u8; 16]),
}

impl PresentVisitor {
    /// Writes the visitor of a tab as text for other nodes.
    pub(super) fn write(visitor: Option<&Self>) -> String {
        let Some(Self { name, person }) = visitor else { return Value::Null.to_string() };
        let person = match person {
            Some(Person::User(user)) => json!(["user", **user]),
            Some(Person::Session(id)) => json!(["session", u128::from_be_bytes(*id).to_string()]),
            None => Value::Null,
        };
        json!([**name, person]).to_string()
    }

    /// Reads the visitor of a tab; `None`: the browser has no session.
    pub(super) fn read(text: &str) -> Option<Self> {
        let visitor: Value = serde_json::from_str(text).ok()?;
        let [name, person] = visitor.as_array()?.first_chunk::<2>()?;
        let person = match (person[0].as_str(), person[1].as_str()) {
            (Some("user"), Some(user)) => Some(Person::User(user.into())),
            (Some("session"), Some(id)) => {
                id.parse().ok().map(|id: u128| Person::Session(id.to_be_bytes()))
            }
            _ => None,
        };
        Some(Self { name: name.as_str()?.into(), person })
    }
}
