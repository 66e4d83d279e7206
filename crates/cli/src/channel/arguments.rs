//! Decides what the words behind `bine channel follow` and the like are: names and data, or options that the command has.

use std::ffi::OsString;
use std::time::Duration;

/// What a command was given.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// What is no option, in its order.
    pub(super) words: Vec<String>,
    options: Vec<(&'static str, String)>,
}

impl Arguments {
    /// Reads them. `known` are the options of the command; one that ends with `=` takes a value. `None`: help is asked
    /// for.
    ///
    /// # Errors
    ///
    /// What is not understood.
    pub(super) fn read(all: &[OsString], known: &[&'static str]) -> Result<Option<Self>, String> {
        let mut own = Self::default();
        let mut rest = all.iter();
        while let Some(word) = rest.next() {
            let word = text(word)?;
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if word.starts_with("--") => (name, Some(value)),
                _ => (word, None),
            };
            match name {
                "--help" | "-h" => return Ok(None),
                "--" => {
                    for word in rest.by_ref() {
                        own.words.push(text(word)?.to_owned());
                    }
                }
                _ if !name.starts_with('-') || name == "-" => own.words.push(word.to_owned()),
                _ => {
                    let option = known.iter().find(|known| known.trim_end_matches('=') == name);
                    let option =
                        *option.ok_or_else(|| format!("there is no option {name} here"))?;
                    let value = match (option.ends_with('='), value) {
                        (true, Some(value)) => value,
                        (true, None) => {
                            let next =
                                rest.next().ok_or_else(|| format!("{name} needs a value"))?;
                            text(next)?
                        }
                        (false, None) => "",
                        (false, Some(_)) => return Err(format!("{name} takes no value")),
                    };
                    own.options.push((option, value.to_owned()));
                }
            }
        }
        Ok(Some(own))
    }

    /// The value of an option, the last one if it is given twice; it is named as in `known`.
    pub(super) fn value(&self, option: &str) -> Option<&str> {
        let mut given = self.options.iter().rev();
        given.find(|(name, _)| *name == option).map(|(_, value)| value.as_str())
    }

    /// All values of an option that may be given several times.
    pub(super) fn values<'a>(&'a self, option: &'a str) -> impl Iterator<Item = &'a str> {
        let given = self.options.iter().filter(move |(name, _)| *name == option);
        given.map(|(_, value)| value.as_str())
    }

    /// Whether an option was given.
    pub(super) fn has(&self, option: &str) -> bool {
        self.value(option).is_some()
    }
}

/// A time like `90`, `90s`, `15m`, `2h` or `7d`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.find(|char: char| !char.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => 0,
    };
    let all = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    let all = all.filter(|seconds| *seconds > 0);
    all.map(Duration::from_secs)
        .ok_or_else(|| format!("`{text}` is no time like 90s, 15m, 2h or 7d"))
}

fn text(word: &OsString) -> Result<&str, String> {
    word.to_str().ok_or_else(|| format!("{} is no text in UTF-8", word.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], expected: &str) {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let told = match Arguments::read(&arguments, &["--lines", "--id="]) {
            Ok(Some(own)) => {
                format!("{:?} {:?} {}", own.words, own.value("--id="), own.has("--lines"))
            }
            Ok(None) => "help".to_owned(),
            Err(message) => message,
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn options_stand_anywhere_and_words_in_their_order() {
        check(&["a", "--id", "1", "-", "--lines"], r#"["a", "-"] Some("1") true"#);
        check(&["--id=1", "--id=2", "a=b"], r#"["a=b"] Some("2") false"#);
        check(&["--", "--lines"], r#"["--lines"] None false"#);
        check(&["a", "-h"], "help");
    }

    #[test]
    fn what_is_not_understood_is_told() {
        check(&["--line"], "there is no option --line here");
        check(&["--id"], "--id needs a value");
        check(&["--lines=1"], "--lines takes no value");
    }

    #[test]
    fn times_have_units() {
        for (text, seconds) in
            [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("7d", 604_800)]
        {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)));
        }
        for wrong in
            ["", "s", "0", "1w", "-1", "1.5h", "99999999999999999999", "999999999999999999d"]
        {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
