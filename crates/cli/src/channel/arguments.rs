//! Parses the arguments of `bine channel COMMAND`: positional arguments, and the options that the
//! command knows.

use std::ffi::OsString;
use std::time::Duration;

/// The arguments of a command.
#[derive(Debug, Default)]
pub(super) struct ChannelArguments {
    /// The arguments that are not options, in order.
    pub(super) positional: Vec<String>,
    options: Vec<(&'static str, String)>,
}

impl ChannelArguments {
    /// Parses the arguments. `known` lists the options of the command; an option that ends with `=`
    /// takes a value. Returns `None` if help is requested.
    ///
    /// # Errors
    ///
    /// An option is unknown, lacks its value, or an argument is not UTF-8.
    pub(super) fn read(all: &[OsString], known: &[&'static str]) -> Result<Option<Self>, String> {
        let mut parsed = Self::default();
        let mut rest = all.iter();
        while let Some(word) = rest.next() {
            let word = utf8(word)?;
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if word.starts_with("--") => (name, Some(value)),
                _ => (word, None),
            };
            match name {
                "--help" | "-h" => return Ok(None),
                "--" => {
                    for word in rest.by_ref() {
                        parsed.positional.push(utf8(word)?.to_owned());
                    }
                }
                _ if !name.starts_with('-') || name == "-" => {
                    parsed.positional.push(word.to_owned());
                }
                _ => {
                    let option = known.iter().find(|known| known.trim_end_matches('=') == name);
                    let option =
                        *option.ok_or_else(|| format!("this command has no option {name}"))?;
                    let value = match (option.ends_with('='), value) {
                        (true, Some(value)) => value,
                        (true, None) => {
                            let next =
                                rest.next().ok_or_else(|| format!("{name} needs a value"))?;
                            utf8(next)?
                        }
                        (false, None) => "",
                        (false, Some(_)) => return Err(format!("{name} takes no value")),
                    };
                    parsed.options.push((option, value.to_owned()));
                }
            }
        }
        Ok(Some(parsed))
    }

    /// Returns the value of an option (the last one if it is repeated). `option` is spelled as in
    /// `known`.
    pub(super) fn value(&self, option: &str) -> Option<&str> {
        let mut given = self.options.iter().rev();
        given.find(|(name, _)| *name == option).map(|(_, value)| value.as_str())
    }

    /// Returns all values of an option that may be repeated.
    pub(super) fn values<'a>(&'a self, option: &'a str) -> impl Iterator<Item = &'a str> {
        let given = self.options.iter().filter(move |(name, _)| *name == option);
        given.map(|(_, value)| value.as_str())
    }

    /// Checks whether the option is present.
    pub(super) fn has(&self, option: &str) -> bool {
        self.value(option).is_some()
    }
}

/// Parses a duration like `90`, `90s`, `15m`, `2h` or `7d`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
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
    let total = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    let total = total.filter(|seconds| *seconds > 0);
    total
        .map(Duration::from_secs)
        .ok_or_else(|| format!("`{text}` is not a duration; write one like 90s, 15m, 2h or 7d"))
}

fn utf8(word: &OsString) -> Result<&str, String> {
    word.to_str().ok_or_else(|| format!("{} is not UTF-8", word.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], expected: &str) {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let outcome = match ChannelArguments::read(&arguments, &["--lines", "--id="]) {
            Ok(Some(parsed)) => {
                format!(
                    "{:?} {:?} {}",
                    parsed.positional,
                    parsed.value("--id="),
                    parsed.has("--lines")
                )
            }
            Ok(None) => "help".to_owned(),
            Err(message) => message,
        };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn accepts_options_between_positional_arguments() {
        check(&["a", "--id", "1", "-", "--lines"], r#"["a", "-"] Some("1") true"#);
        check(&["--id=1", "--id=2", "a=b"], r#"["a=b"] Some("2") false"#);
        check(&["--", "--lines"], r#"["--lines"] None false"#);
        check(&["a", "-h"], "help");
    }

    #[test]
    fn reports_arguments_it_does_not_understand() {
        check(&["--line"], "this command has no option --line");
        check(&["--id"], "--id needs a value");
        check(&["--lines=1"], "--lines takes no value");
    }

    #[test]
    fn parses_durations_with_units() {
        for (text, seconds) in
            [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("7d", 604_800)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)));
        }
        for wrong in
            ["", "s", "0", "1w", "-1", "1.5h", "99999999999999999999", "999999999999999999d"]
        {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
