//! Decides what of another's text a terminal is shown: letters, and nothing that commands it.

use std::borrow::Cow;

/// The text with each control character replaced but tabs and the ends of lines (ECMA-48 sections 5.2 and 5.3: the sets C0
/// and C1, with DEL).
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    let commands = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if text.contains(commands) { text.replace(commands, "\u{fffd}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_command_a_terminal_is_replaced_and_nothing_else() {
        for (text, shown) in [
            ("It climbs.\n\tB\u{fc}cher \u{1f600}", "It climbs.\n\tB\u{fc}cher \u{1f600}"),
            ("\u{1b}]52;c;eA==\u{7}", "\u{fffd}]52;c;eA==\u{fffd}"),
            ("\u{9b}2J", "\u{fffd}2J"),
            ("\0\u{8}\r\u{7f}", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(harmless(text), shown);
        }
    }
}
