//! Names and e-mail addresses of accounts: which are valid, and which are the same.

use crate::text::Text;
use crate::user_name::{UserName, name_key};
use crate::visitor_message::AccountMessage;

/// The most characters of a name at a sign-up.
const MAX_NAME: usize = 64;
/// The most bytes of an e-mail address (RFC 5321 section 4.5.3.1).
const MAX_EMAIL: usize = 254;
/// Names with a meaning of their own in rights.
const RESERVED: [&str; 4] = ["anonymous", "users", "administrators", "console"];

/// Checks the name of a new account.
///
/// # Errors
///
/// The end of a sentence that begins with `the name`.
pub(super) fn check_name(name: &str) -> Result<Text, AccountMessage> {
    let Ok(valid) = UserName::parse(name) else {
        return Err(AccountMessage::NameLetters {});
    };
    if valid.chars().take(MAX_NAME + 1).count() > MAX_NAME {
        return Err(AccountMessage::NameLong { most: MAX_NAME });
    }
    if valid.contains('@') {
        return Err(AccountMessage::NameAt {});
    }
    // Two names could look the same otherwise.
    if valid.contains(is_invisible) {
        return Err(AccountMessage::NameInvisible {});
    }
    if RESERVED.contains(&&*name_key(&valid)) {
        return Err(AccountMessage::NameReserved {});
    }
    Ok(Text::from(valid.as_str()))
}

/// Checks an e-mail address as far as that is possible without a mail to it.
///
/// # Errors
///
/// The end of a sentence that begins with `the e-mail address`.
pub(super) fn check_email(email: &str) -> Result<Text, AccountMessage> {
    let wrong = || AccountMessage::EmailForm {};
    let (local, domain) = email.rsplit_once('@').ok_or_else(wrong)?;
    let is_wrong = |letter: char| {
        letter.is_whitespace()
            || letter.is_control()
            || matches!(letter, ',' | ';' | '<' | '>' | '"' | '@')
    };
    let is_right = !local.is_empty()
        && !domain.is_empty()
        && email.len() <= MAX_EMAIL
        && !local.contains(is_wrong)
        && !domain.contains(is_wrong)
        && !domain.starts_with('.')
        && !domain.ends_with('.')
        && !domain.contains("..");
    if is_right { Ok(Text::from(email)) } else { Err(wrong()) }
}

fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{200b}'..='\u{200f}'
        | '\u{2060}'..='\u{206f}' | '\u{20d0}'..='\u{20ff}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_names_that_confuse_people_or_rights() {
        for right in ["ann", "Ann Smith", "17", "\u{e9}va", "\u{3a9}", &"n".repeat(64)] {
            assert_eq!(check_name(right).as_deref(), Ok(right));
        }
        for (wrong, reason) in [
            ("", "white space"),
            (" ann", "white space"),
            ("a/b", "none of"),
            ("a@b.example", "@"),
            ("e\u{301}va", "combining"),
            ("an\u{200b}n", "invisible"),
            ("Administrators", "reserved"),
            ("\u{ff41}nonymous", "reserved"),
            (&"n".repeat(65), "at most 64"),
        ] {
            let error = check_name(wrong).unwrap_err().to_string();
            assert!(error.contains(reason), "{wrong}: {error}");
        }
    }

    #[test]
    fn rejects_texts_that_are_no_addresses() {
        for right in ["a@b", "ann+x@example.org", "\u{fc}n\u{ef}@ex\u{e4}mple.org"] {
            assert_eq!(check_email(right).as_deref(), Ok(right));
        }
        for wrong in [
            "",
            "ann",
            "@b",
            "a@",
            "a b@c",
            "a@b\r\nBcc: c@d",
            "a@b,c@d",
            "a@.b",
            "a@b..c",
            "a@b@c",
        ] {
            assert!(check_email(wrong).is_err(), "{wrong}");
        }
    }
}
