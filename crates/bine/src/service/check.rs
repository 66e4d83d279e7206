//! Checks for fuzzing: properties that hold for the arguments of any call.

use super::call_arguments::{ArgumentsError, CallArguments, MAX_LISTED, ServiceArguments};
use crate::Text;
use crate::store::{Id, RowId, Time};
use crate::wire::Bytes;

/// One argument of each kind.
type Arguments =
    (i64, Option<u8>, Vec<Text>, bool, Time, Bytes, Result<Text, Option<char>>, f32, Option<RowId>);

const NAMES: [(&str, &str); 9] = [
    ("whole", "i64"),
    ("small", "Option<u8>"),
    ("texts", "Vec<Text>"),
    ("yes", "bool"),
    ("moment", "Time"),
    ("bytes", "Bytes"),
    ("told", "Result<Text, Option<char>>"),
    ("half", "f32"),
    ("id", "Option<RowId>"),
];

/// Asserts for any content of a call that the server rejects it with a message, or parses equal
/// arguments twice, or reports each wrong argument once by its name.
pub fn check_call(kind: u8, bytes: &[u8]) {
    let given = match (kind % 4, str::from_utf8(bytes)) {
        (0, _) => CallArguments::in_content("application/json", bytes),
        (1, _) => CallArguments::in_content("application/x-www-form-urlencoded", bytes),
        (2, _) => CallArguments::in_content("multipart/form-data; boundary=x", bytes),
        (_, Ok(query)) => CallArguments::in_query(query),
        (_, Err(_)) => return,
    };
    let given = match given {
        Ok(given) => given,
        Err(ArgumentsError::Bad(words)) => return assert!(!words.is_empty()),
        Err(ArgumentsError::Unsupported) => panic!("each of these is a way to call"),
    };
    let taken = Arguments::take(&given, &NAMES);
    let again = Arguments::take(&given, &NAMES);
    // Compares the text, since NaN is not equal to itself.
    assert_eq!(format!("{taken:?}"), format!("{again:?}"));
    if let Err(wrong) = taken {
        assert!(!wrong.is_empty() && wrong.iter().all(|wrong| !wrong.detail.is_empty()));
        assert!(wrong.len() <= MAX_LISTED + NAMES.len());
        // Two shortened names may be equal.
        let whole = wrong.iter().map(|wrong| &wrong.name).filter(|name| name.len() <= 40);
        let mut names: Vec<_> = whole.collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|one, other| one < other), "{names:?}");
    }
    let _ = <(Id<()>,)>::take(&given, &NAMES[8..]);
}
