//! Command-line options: pairs of a name and its value.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail};

/// The given options, each known to the command.
pub(crate) struct Arguments {
    given: Vec<(String, String)>,
}

impl Arguments {
    /// Pairs up `words`; every option must be in `known`.
    pub(crate) fn parse(words: &[String], known: &[&str]) -> Result<Self> {
        let mut given = Vec::new();
        for pair in words.chunks(2) {
            let [name, value] = pair else { bail!("`{}` has no value; see --help", pair[0]) };
            if !known.contains(&name.as_str()) {
                bail!("unknown option `{name}`; this command has {}", known.join(" "));
            }
            given.push((name.clone(), value.clone()));
        }
        Ok(Self { given })
    }

    /// The positive number given for `name`, or `default`.
    pub(crate) fn number(&self, name: &str, default: u64) -> Result<u64> {
        let Some(value) = self.word(name) else { return Ok(default) };
        let number: u64 = value.parse().with_context(|| format!("{name} {value}"))?;
        if number == 0 {
            bail!("{name} must be at least 1");
        }
        Ok(number)
    }

    /// The comma-separated names given for `name`, if any.
    pub(crate) fn names(&self, name: &str) -> Option<Vec<&str>> {
        Some(self.word(name)?.split(',').collect())
    }

    /// The comma-separated positive numbers given for `name`, or `default`.
    pub(crate) fn numbers(&self, name: &str, default: &[u64]) -> Result<Vec<u64>> {
        let Some(words) = self.names(name) else { return Ok(default.to_vec()) };
        let number = |word: &str| word.parse().ok().filter(|number| *number > 0);
        words.iter().map(|word| number(word).with_context(|| format!("{name} {word}"))).collect()
    }

    /// The comma-separated choices given for `name`, or `default`.
    pub(crate) fn choices<T: FromStr<Err = Error>>(
        &self,
        name: &str,
        default: Vec<T>,
    ) -> Result<Vec<T>> {
        let Some(words) = self.names(name) else { return Ok(default) };
        words.into_iter().map(|word| word.parse().with_context(|| name.to_owned())).collect()
    }

    /// The value given for `name`, if any.
    pub(crate) fn word(&self, name: &str) -> Option<&str> {
        self.given.iter().rfind(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

/// The options that affect the figures: all but the folder for results.
impl fmt::Display for Arguments {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = self.given.iter().filter(|(name, _)| name != "--into");
        let words: Vec<String> = given.map(|(name, value)| format!("{name} {value}")).collect();
        out.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments> {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        Arguments::parse(&words, &["--rounds", "--only"])
    }

    #[test]
    fn uses_the_last_of_two_equal_options() {
        assert_eq!(parse("--rounds 2 --rounds 3").unwrap().number("--rounds", 5).unwrap(), 3);
    }

    #[test]
    fn uses_the_default_without_an_option() {
        let arguments = parse("").unwrap();
        assert_eq!(arguments.number("--rounds", 5).unwrap(), 5);
        assert!(arguments.names("--only").is_none());
        assert_eq!(arguments.choices("--only", vec![Even(2)]).unwrap(), [Even(2)]);
    }

    /// A choice for tests.
    #[derive(PartialEq, Eq, Debug)]
    struct Even(u64);

    impl FromStr for Even {
        type Err = Error;

        fn from_str(text: &str) -> Result<Self> {
            let number: u64 = text.parse()?;
            if number % 2 == 1 {
                bail!("{number} is odd");
            }
            Ok(Self(number))
        }
    }

    #[test]
    fn reads_choices_and_names_the_option_of_a_wrong_one() {
        let choices = |line: &str| parse(line).unwrap().choices("--only", vec![Even(2)]);
        assert_eq!(choices("--only 4,8").unwrap(), [Even(4), Even(8)]);
        let error = format!("{:#}", choices("--only 4,5").unwrap_err());
        assert_eq!(error, "--only: 5 is odd");
    }

    #[test]
    fn rejects_unknown_incomplete_and_zero_options() {
        assert!(parse("--round 2").is_err());
        assert!(parse("--rounds").is_err());
        assert!(parse("--rounds 0").unwrap().number("--rounds", 5).is_err());
        assert!(parse("--rounds many").unwrap().number("--rounds", 5).is_err());
    }
}
