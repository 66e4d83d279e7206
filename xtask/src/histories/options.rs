//! The options of the command.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use super::faults::Fault;
use super::world::Engine;

/// The choices for a run.
pub(super) struct Options {
    pub(super) seed: u64,
    pub(super) histories: u64,
    /// Histories of a round.
    pub(super) at_a_time: u64,
    pub(super) engine: Engine,
    pub(super) faults: Vec<Fault>,
    /// No new round begins later.
    pub(super) minutes: Option<u64>,
    pub(super) is_planted: bool,
    /// A program that is built already.
    pub(super) program: Option<PathBuf>,
    pub(super) ends_at_failure: bool,
    /// Whether this is the process that runs the histories.
    pub(super) is_inside: bool,
    pub(super) has_namespaces: bool,
    /// The words of the user, for the process inside.
    pub(super) words: Vec<String>,
}

impl Options {
    pub(super) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            seed: 1,
            histories: 1_000,
            at_a_time: 25,
            engine: Engine::Cluster,
            faults: Fault::parse("all")?,
            minutes: None,
            is_planted: false,
            program: None,
            ends_at_failure: false,
            is_inside: false,
            has_namespaces: false,
            words: words.iter().map(|&word| word.to_owned()).collect(),
        };
        let mut rest = words.iter().copied();
        while let Some(word) = rest.next() {
            match word {
                "--planted" => {
                    options.is_planted = true;
                    options.words.retain(|word| word != "--planted");
                    continue;
                }
                "--until-failure" => {
                    options.ends_at_failure = true;
                    continue;
                }
                "--seed" | "--histories" | "--at-a-time" | "--engine" | "--faults"
                | "--minutes" | "--program" | "--inside" => {}
                _ => bail!("`{word}` is not an option of histories; see cargo xtask --help"),
            }
            let value = rest.next().with_context(|| format!("{word} needs a value"))?;
            options.set(word, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, option: &str, value: &str) -> Result<()> {
        let number = || match value.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => bail!("{option} needs a whole number above 0, not `{value}`"),
        };
        match option {
            "--seed" => self.seed = number()?,
            "--histories" => self.histories = number()?,
            "--at-a-time" => self.at_a_time = number()?,
            "--minutes" => self.minutes = Some(number()?),
            "--faults" => self.faults = Fault::parse(value)?,
            "--program" => self.program = Some(value.into()),
            "--inside" => {
                (self.is_inside, self.has_namespaces) = (true, value == "namespaces");
            }
            _ => {
                self.engine = match value {
                    "one" => Engine::One,
                    "cluster" => Engine::Cluster,
                    _ => bail!("--engine needs one or cluster, not `{value}`"),
                };
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_mistake() {
        let message = |words: &[&str]| Options::parse(words).err().map(|error| error.to_string());
        assert_eq!(message(&["--seed", "7", "--engine", "one", "--planted"]), None);
        for (words, expected) in [
            (&["--seed"][..], "--seed needs a value"),
            (&["--seed", "x"], "--seed needs a whole number above 0, not `x`"),
            (&["--engine", "two"], "--engine needs one or cluster, not `two`"),
            (&["--fast"], "`--fast` is not an option of histories; see cargo xtask --help"),
        ] {
            assert_eq!(message(words).as_deref(), Some(expected));
        }
    }
}
