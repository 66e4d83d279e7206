//! The records and snapshot blocks of shared state: a first byte, then JSON.

use std::sync::Arc;

use serde_json::{Value, json};

/// The first byte of a record.
pub(super) const RECORD: u8 = 64;
/// The first byte of a block with entries of rosters.
pub(super) const ROSTER_BLOCK: u8 = 65;
/// The first byte of a block with values.
pub(super) const VALUE_BLOCK: u8 = 66;

/// Whether records and blocks with this first byte are those of shared state.
pub(super) const fn owns(first: u8) -> bool {
    matches!(first, RECORD | ROSTER_BLOCK | VALUE_BLOCK)
}

/// A change of the shared state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum StateRecord {
    /// A node adds its entries to a roster, or removes them.
    Roster { node: Arc<str>, time: u64, place: Arc<str>, changes: Vec<EntryChange> },
    /// A node has ended: its entries vanish, up to [`MAX_CHANGES`].
    End { node: Arc<str>, time: u64 },
    /// A value is replaced by this JSON.
    Value { node: Arc<str>, name: Arc<str>, json: Arc<str> },
    /// A message to one node, or to all.
    Message { topic: Arc<str>, to: Option<Arc<str>>, body: Arc<str> },
}

/// A key of a roster, with its new value; `None`: the node removes its entry.
pub(super) type EntryChange = (Arc<str>, Option<Arc<str>>);

/// The most changes of one record.
pub(super) const MAX_CHANGES: usize = 500;

impl StateRecord {
    pub(super) fn encode(&self) -> Vec<u8> {
        let value = match self {
            Self::Roster { node, time, place, changes } => {
                let changes: Vec<Value> =
                    changes.iter().map(|(key, value)| json!([**key, value.as_deref()])).collect();
                json!(["roster", **node, time, **place, changes])
            }
            Self::End { node, time } => json!(["end", **node, time]),
            Self::Value { node, name, json } => json!(["value", **node, **name, **json]),
            Self::Message { topic, to, body } => {
                json!(["message", **topic, to.as_deref(), **body])
            }
        };
        block(RECORD, &value)
    }

    /// Decodes a record; `None`: it is invalid.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let value = parse(RECORD, bytes)?;
        let parts = value.as_array()?;
        let time = |at: usize| parts.get(at)?.as_u64();
        let word = |at: usize| text(parts.get(at)?);
        Some(match (parts.first()?.as_str()?, parts.len()) {
            ("roster", 5) => {
                let changes = parts[4].as_array()?.iter().map(|change| {
                    let [key, value] = change.as_array()?.first_chunk::<2>()?;
                    Some((text(key)?, optional_text(value).ok()?))
                });
                let changes = changes.collect::<Option<Vec<_>>>()?;
                let is_allowed = changes.len() <= MAX_CHANGES;
                is_allowed.then_some(())?;
                Self::Roster { node: word(1)?, time: time(2)?, place: word(3)?, changes }
            }
            ("end", 3) => Self::End { node: word(1)?, time: time(2)? },
            ("value", 4) => Self::Value { node: word(1)?, name: word(2)?, json: word(3)? },
            ("message", 4) => {
                let to = optional_text(parts.get(2)?).ok()?;
                Self::Message { topic: word(1)?, to, body: word(3)? }
            }
            _ => return None,
        })
    }
}

/// Writes a block.
pub(super) fn block(first: u8, value: &Value) -> Vec<u8> {
    let mut bytes = vec![first];
    // Writing into a vector cannot fail, and JSON values are serializable.
    let _ = serde_json::to_writer(&mut bytes, value);
    bytes
}

/// Parses a block with this first byte.
pub(super) fn parse(first: u8, bytes: &[u8]) -> Option<Value> {
    let json = bytes.strip_prefix(&[first])?;
    serde_json::from_slice(json).ok()
}

/// A text.
pub(super) fn text(value: &Value) -> Option<Arc<str>> {
    value.as_str().map(Arc::from)
}

/// A text, or `None` for null.
///
/// # Errors
///
/// It is neither.
fn optional_text(value: &Value) -> Result<Option<Arc<str>>, ()> {
    if value.is_null() { Ok(None) } else { text(value).map(Some).ok_or(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_rejects_everything_else() {
        let records = [
            StateRecord::Roster {
                node: "a".into(),
                time: 7,
                place: "board".into(),
                changes: vec![("ann".into(), Some("\"1\"".into())), ("bob".into(), None)],
            },
            StateRecord::End { node: "a".into(), time: u64::MAX },
            StateRecord::Value { node: "a".into(), name: "degrees".into(), json: "21.5".into() },
            StateRecord::Message { topic: "event".into(), to: None, body: "\u{e9}".into() },
            StateRecord::Message { topic: "event".into(), to: Some("b".into()), body: "".into() },
        ];
        for record in records {
            let bytes = record.encode();
            assert_eq!(StateRecord::decode(&bytes), Some(record));
            for cut in 0..bytes.len() {
                assert_eq!(StateRecord::decode(&bytes[..cut]), None);
            }
        }
        for invalid in [r#"["end","a",-1]"#, r#"["end","a",1,2]"#, r#"["value","a",1,"2"]"#, "{}"] {
            let bytes = [&[RECORD], invalid.as_bytes()].concat();
            assert_eq!(StateRecord::decode(&bytes), None, "{invalid}");
        }
        let many = vec![json!(["k", null]); MAX_CHANGES + 1];
        let many = block(RECORD, &json!(["roster", "a", 1, "board", many]));
        assert_eq!(StateRecord::decode(&many), None);
    }
}
