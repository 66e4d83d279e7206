//! Decides what the words behind `bine data dump` and the like are: places, or options that the command has.

use std::ffi::{OsStr, OsString};

/// What a command was given.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// What is no option: the folder first.
    pub(super) words: Vec<OsString>,
    pub(super) tables: Vec<String>,
    pub(super) merge: bool,
}

impl Arguments {
    /// Reads them; an option must stand in the command's own `usage`. `None`: help is asked for.
    ///
    /// # Errors
    ///
    /// What is not understood.
    pub(super) fn read(all: &[OsString], usage: &str) -> Result<Option<Self>, String> {
        let mut own = Self::default();
        let mut rest = all.iter();
        while let Some(word) = rest.next() {
            let text = word.to_str().unwrap_or_default();
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(OsStr::new(value))),
                None => (text, None),
            };
            match name {
                "--help" | "-h" => return Ok(None),
                "--" => own.words.extend(rest.by_ref().cloned()),
                "--merge" if value.is_none() && usage.contains("--merge") => own.merge = true,
                "--table" if usage.contains("--table") => {
                    let value = value.or_else(|| rest.next().map(OsString::as_os_str));
                    let value = value.ok_or("which table? Name it behind --table")?;
                    let name = value.to_str().ok_or("the name of a table is text")?;
                    own.tables.push(name.to_owned());
                }
                _ if text.starts_with('-') => {
                    return Err(format!("there is no option {text} here"));
                }
                _ => own.words.push(word.clone()),
            }
        }
        Ok(Some(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], expected: &str) {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let read = Arguments::read(&arguments, "--table --merge");
        let told = match read {
            Ok(Some(own)) => format!("{:?} {:?} {}", own.words, own.tables, own.merge),
            Ok(None) => "help".to_owned(),
            Err(message) => message,
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn options_stand_anywhere_and_places_in_their_order() {
        check(&["a", "--table", "b", "--table=c", "d"], r#"["a", "d"] ["b", "c"] false"#);
        check(&["--merge", "a"], r#"["a"] [] true"#);
        check(&["--", "--merge"], r#"["--merge"] [] false"#);
        check(&["a", "-h"], "help");
    }

    #[test]
    fn what_is_not_understood_is_told() {
        check(&["a", "--tables"], "there is no option --tables here");
        check(&["a", "--table"], "which table? Name it behind --table");
        check(&["--merge=yes"], "there is no option --merge=yes here");
        assert!(Arguments::read(&["--merge".into()], "--table").is_err());
    }
}
