//! Positions: places in the order of all commits.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A place in the order of all commits, which all nodes of a cluster share.
///
/// A text such as `17-9f3a01c2` is the same position on every node; as JSON it is a string.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Position {
    /// The number of commits up to this place. All nodes count alike.
    pub(crate) sequence: u64,
    /// Identifies the order: a stream that is deleted and created again begins another one, whose
    /// positions cannot be compared.
    pub(crate) order: u32,
}

/// A text is no position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidPosition;

impl Display for Position {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{}-{:08x}", self.sequence, self.order)
    }
}

impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let (sequence, order) = text.split_once('-').ok_or(InvalidPosition)?;
        let is_written = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if order.len() != 8 || !order.bytes().all(is_written) || sequence.starts_with('+') {
            return Err(InvalidPosition);
        }
        let sequence = sequence.parse().map_err(|_| InvalidPosition)?;
        let order = u32::from_str_radix(order, 16).map_err(|_| InvalidPosition)?;
        Ok(Self { sequence, order })
    }
}

impl Display for InvalidPosition {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str("must be a position as a node has written it, like 17-9f3a01c2")
    }
}

impl std::error::Error for InvalidPosition {}

impl Serialize for Position {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let position = Position { sequence: 17, order: 0x0f3a_01c2 };
        assert_eq!(position.to_string(), "17-0f3a01c2");
        assert_eq!("17-0f3a01c2".parse(), Ok(position));
        let json = serde_json::to_string(&position).unwrap();
        assert_eq!(json, "\"17-0f3a01c2\"");
        assert_eq!(serde_json::from_str::<Position>(&json).unwrap(), position);
    }

    #[test]
    fn rejects_other_texts() {
        for text in
            ["", "17", "17-", "-0f3a01c2", "17-0f3a01c", "17-0F3A01C2", "+1-0f3a01c2", "x-0f3a01c2"]
        {
            assert_eq!(text.parse::<Position>(), Err(InvalidPosition), "{text}");
        }
    }
}
