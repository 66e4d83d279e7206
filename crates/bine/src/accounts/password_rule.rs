//! The rule for new passwords: a length, and no password that attackers try first.

use crate::visitor_message::AccountMessage;

/// The most characters of a password; longer ones would only cost time.
pub(super) const MAX_LENGTH: usize = 256;
/// The shortest minimum (OWASP ASVS 5.0, 6.2.1).
pub(super) const SHORTEST_MINIMUM: usize = 8;
/// The 3 000 most common passwords of at least eight letters (ASVS 6.2.4), in lower case and sorted
/// (docs/decisions/0015-accounts.md names the source).
const COMMON: &str = include_str!("common_passwords.txt");
/// Shorter words of the context occur in passwords by chance.
const SHORTEST_WORD: usize = 4;

/// Checks a new password. `words` are those of its context, such as the user's name and the host.
/// There is no rule about kinds of letters (ASVS 6.2.5).
///
/// # Errors
///
/// The end of a sentence that begins with `the password`.
pub(super) fn check(password: &str, minimum: usize, words: &[&str]) -> Result<(), AccountMessage> {
    let length = password.chars().take(MAX_LENGTH + 1).count();
    if length < minimum {
        return Err(AccountMessage::PasswordShort { least: minimum });
    }
    if length > MAX_LENGTH {
        return Err(AccountMessage::PasswordLong { most: MAX_LENGTH });
    }
    let lower = password.to_lowercase();
    if is_common(&lower) || is_repetition(&lower) {
        return Err(AccountMessage::PasswordCommon {});
    }
    let parts = words.iter().flat_map(|word| word.split(|letter: char| !letter.is_alphanumeric()));
    let mut parts =
        parts.filter(|part| part.chars().count() >= SHORTEST_WORD).map(str::to_lowercase);
    // A long password may contain a name; a short one that is mostly a name may not.
    let is_mostly =
        |part: &String| lower.contains(&**part) && length < part.chars().count() + SHORTEST_PADDING;
    if parts.any(|part| is_mostly(&part)) {
        return Err(AccountMessage::PasswordPersonal {});
    }
    Ok(())
}

/// Letters that a password must have besides a word of its context.
const SHORTEST_PADDING: usize = 8;

fn is_common(lower: &str) -> bool {
    let bytes = COMMON.as_bytes();
    let (mut low, mut high) = (0, bytes.len());
    while low < high {
        let middle = low.midpoint(high);
        let start = bytes[..middle].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let length = bytes[start..].iter().position(|byte| *byte == b'\n').unwrap_or(0);
        match bytes[start..start + length].cmp(lower.as_bytes()) {
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Less => low = start + length + 1,
            std::cmp::Ordering::Greater => high = start,
        }
    }
    false
}

/// Whether one to three letters are repeated, as in `aaaaaaaa` and `abcabcabc`.
fn is_repetition(lower: &str) -> bool {
    let letters: Vec<char> = lower.chars().collect();
    (1..=3).any(|period| {
        letters.len() > period
            && letters.iter().zip(&letters[period..]).all(|(one, other)| one == other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(password: &str, reason: &str) {
        let error =
            check(password, 8, &["ann-marie", "ann@brewery.example"]).unwrap_err().to_string();
        assert!(error.contains(reason), "{password}: {error}");
    }

    #[test]
    fn accepts_long_passwords_of_any_letters() {
        let long = "x y".repeat(30) + "z";
        for right in [
            "correct horse",
            "12 Kieselsteine",
            "\u{fc}n\u{ef}c\u{f6}d\u{e9} \u{1f600} ok",
            &long,
            "marie-und-14-hopfen",
        ] {
            assert_eq!(check(right, 8, &["ann-marie"]), Ok(()), "{right}");
        }
    }

    #[test]
    fn rejects_short_common_and_personal_passwords() {
        refuses("hop vine"[..7].trim_end(), "at least 8 characters");
        refuses(&"correct horse".repeat(20), "at most 256");
        for common in ["password", "Password1", "12345678", "iloveyou", "qwertyuiop", "trustno1"] {
            refuses(common, "attackers try first");
        }
        refuses("aaaaaaaaaaaa", "attackers try first");
        refuses("abcabcabcabc", "attackers try first");
        for personal in ["marie2026", "Brewery!!", "1marie111"] {
            refuses(personal, "made of your name");
        }
    }

    #[test]
    fn list_is_sorted_and_has_three_thousand_passwords() {
        let all: Vec<&str> = COMMON.lines().collect();
        assert_eq!(all.len(), 3000);
        assert!(all.is_sorted() && all.iter().all(|one| is_common(one) && one.len() >= 8));
        assert!(!is_common("correct horse") && !is_common("") && !is_common("zzzzzzzzzzzzzzz"));
    }
}
