//! Removes control characters from untrusted text before it is shown on a terminal.

use std::borrow::Cow;

/// Replaces each control character except tabs and newlines (ECMA-48 sections 5.2 and 5.3: the sets
/// C0 and C1, with DEL).
pub(super) fn sanitize(text: &str) -> Cow<'_, str> {
    let is_control = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
    if text.contains(is_control) {
        text.replace(is_control, "\u{fffd}").into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_only_control_characters() {
        for (text, shown) in [
            ("It climbs.\n\tB\u{fc}cher \u{1f600}", "It climbs.\n\tB\u{fc}cher \u{1f600}"),
            ("\u{1b}]52;c;eA==\u{7}", "\u{fffd}]52;c;eA==\u{fffd}"),
            ("\u{9b}2J", "\u{fffd}2J"),
            ("\0\u{8}\r\u{7f}", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(sanitize(text), shown);
        }
    }
}
