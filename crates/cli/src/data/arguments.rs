//! Parses the arguments of `bine data COMMAND`: paths, and the options that the command knows.

use std::ffi::{OsStr, OsString};

/// The arguments of a command.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// The arguments that are not options; the first is the folder.
    pub(super) positional: Vec<OsString>,
    pub(super) tables: Vec<String>,
    pub(super) merge: bool,
}

impl Arguments {
    /// Parses the arguments; `usage` of the command tells which options it knows. Returns `None` if
    /// help is requested.
    ///
    /// # Errors
    ///
    /// An option is unknown or lacks its value.
    pub(super) fn read(all: &[OsString], usage: &str) -> Result<Option<Self>, String> {
        let mut parsed = Self::default();
        let mut rest = all.iter();
        while let Some(word) = rest.next() {
            let text = word.to_str().unwrap_or_default();
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(OsStr::new(value))),
                None => (text, None),
            };
            match name {
                "--help" | "-h" => return Ok(None),
                "--" => parsed.positional.extend(rest.by_ref().cloned()),
                "--merge" if value.is_none() && usage.contains("--merge") => parsed.merge = true,
                "--table" if usage.contains("--table") => {
                    let value = value.or_else(|| rest.next().map(OsString::as_os_str));
                    let value = value.ok_or("--table needs the name of a table")?;
                    let name = value.to_str().ok_or("the name of a table must be UTF-8")?;
                    parsed.tables.push(name.to_owned());
                }
                _ if text.starts_with('-') => {
                    return Err(format!("this command has no option {text}"));
                }
                _ => parsed.positional.push(word.clone()),
            }
        }
        Ok(Some(parsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], expected: &str) {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let read = Arguments::read(&arguments, "--table --merge");
        let outcome = match read {
            Ok(Some(parsed)) => {
                format!("{:?} {:?} {}", parsed.positional, parsed.tables, parsed.merge)
            }
            Ok(None) => "help".to_owned(),
            Err(message) => message,
        };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn accepts_options_between_paths() {
        check(&["a", "--table", "b", "--table=c", "d"], r#"["a", "d"] ["b", "c"] false"#);
        check(&["--merge", "a"], r#"["a"] [] true"#);
        check(&["--", "--merge"], r#"["--merge"] [] false"#);
        check(&["a", "-h"], "help");
    }

    #[test]
    fn reports_arguments_it_does_not_understand() {
        check(&["a", "--tables"], "this command has no option --tables");
        check(&["a", "--table"], "--table needs the name of a table");
        check(&["--merge=yes"], "this command has no option --merge=yes");
        assert!(Arguments::read(&["--merge".into()], "--table").is_err());
    }
}
