//! Parses the arguments of `bine data COMMAND`: paths, and the options that the command knows.

use std::ffi::{OsStr, OsString};

/// The arguments of a command.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// The arguments that are not options; the first is the folder.
    pub(super) positional: Vec<OsString>,
    pub(super) tables: Vec<String>,
    pub(super) merge: bool,
    pub(super) link: bool,
    pub(super) replace: bool,
    /// The value of `--at`.
    pub(super) at: Option<String>,
    /// The value of `--keep`.
    pub(super) keep: Option<String>,
    /// The value of `--share`.
    pub(super) share: Option<String>,
}

impl Arguments {
    /// Parses the arguments; `usage` of the command lists its options. Returns `None` if help is
    /// requested.
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
                "--link" if value.is_none() && usage.contains("--link") => parsed.link = true,
                "--replace" if value.is_none() && usage.contains("--replace") => {
                    parsed.replace = true;
                }
                "--table" | "--at" | "--keep" | "--share"
                    if usage.contains(&format!("{name} ")) =>
                {
                    let value = value.or_else(|| rest.next().map(OsString::as_os_str));
                    let value = match (value, name) {
                        (Some(value), _) => value,
                        (None, "--table") => Err("--table needs the name of a table")?,
                        (None, "--at") => Err("--at needs a time or the number of a change")?,
                        (None, "--share") => Err("--share needs a percentage from 1 to 100")?,
                        (None, _) => Err("--keep needs a number of days")?,
                    };
                    let value = value.to_str().ok_or("the value of an option must be UTF-8")?;
                    match name {
                        "--table" => parsed.tables.push(value.to_owned()),
                        "--at" => parsed.at = Some(value.to_owned()),
                        "--share" => parsed.share = Some(value.to_owned()),
                        _ => parsed.keep = Some(value.to_owned()),
                    }
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
        let read = Arguments::read(&arguments, "--table NAME --merge");
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
        assert!(Arguments::read(&["--merge".into()], "--table NAME").is_err());
        let read = |arguments: [&str; 2]| {
            Arguments::read(
                &arguments.map(OsString::from),
                "--at MOMENT, --keep DAYS, --share PERCENT, --link",
            )
        };
        let parsed = read(["--at=7", "--link"]).unwrap().unwrap();
        assert_eq!((parsed.at.as_deref(), parsed.link, parsed.replace), (Some("7"), true, false));
        assert_eq!(read(["--keep", "30"]).unwrap().unwrap().keep.as_deref(), Some("30"));
        assert_eq!(read(["--share", "50"]).unwrap().unwrap().share.as_deref(), Some("50"));
        assert_eq!(read(["a", "--share"]).unwrap_err(), "--share needs a percentage from 1 to 100");
        assert_eq!(read(["a", "--at"]).unwrap_err(), "--at needs a time or the number of a change");
        assert_eq!(read(["a", "--keep"]).unwrap_err(), "--keep needs a number of days");
        assert_eq!(read(["a", "--replace"]).unwrap_err(), "this command has no option --replace");
    }
}
