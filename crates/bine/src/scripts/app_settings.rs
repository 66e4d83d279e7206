//! The settings of an application: the file `app.toml` in its folder.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::interned::interned;
use crate::nearest::nearest;
use crate::service::Rule;

/// The name of the file.
pub(super) const SETTINGS_FILE: &str = "app.toml";
/// Bytes of the file.
const MAX_LENGTH: u64 = 64 << 10;

/// The settings of an application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AppSettings {
    /// The title of pages without one.
    pub(super) title: Option<String>,
    /// Whether its pages are compressed; `None`: the configuration of the server decides.
    pub(super) compression: Option<bool>,
    /// The prefix of its tables, if it is not the path of the folder.
    pub(super) name: Option<String>,
    /// The permitted users of the application.
    pub(super) access: AppAccess,
    /// The limit of memory of one instance, in MiB.
    pub(super) memory: usize,
    /// How long a script may run without waiting.
    pub(super) run_time: Duration,
    /// How long a call may take with all its waits.
    pub(super) await_time: Duration,
    /// Whether the application is loaded when the server starts.
    pub(super) starts: bool,
}

/// The permitted users of an application.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum AppAccess {
    #[default]
    Anyone,
    /// Logged-in users.
    Users,
    /// The members of a group.
    Group(String),
}

impl AppAccess {
    /// The rule for pages and services.
    pub(super) fn rule(&self) -> Rule {
        match self {
            Self::Anyone => Rule::ANYONE,
            Self::Users => Rule::USERS,
            Self::Group(name) => Rule::group(interned(name)),
        }
    }
}

/// The keys, for messages.
const KEYS: [&str; 8] =
    ["title", "name", "access", "compress", "memory_mb", "timeout_ms", "await_ms", "start"];

impl Default for AppSettings {
    fn default() -> Self {
        Self {
            title: None,
            compression: None,
            name: None,
            access: AppAccess::Anyone,
            memory: 64,
            run_time: Duration::from_millis(200),
            await_time: Duration::from_secs(30),
            starts: false,
        }
    }
}

impl AppSettings {
    /// Reads the settings in a folder. Without a file, all have their defaults.
    ///
    /// # Errors
    ///
    /// A message that names the file, the key and the correction.
    pub(super) fn in_folder(folder: &Path) -> Result<Self, String> {
        let path = folder.join(SETTINGS_FILE);
        let named = |reason: String| format!("{}: {reason}", path.display());
        match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(named(error.to_string())),
            Ok(facts) if facts.len() > MAX_LENGTH => {
                return Err(named(format!("it has more than {MAX_LENGTH} bytes")));
            }
            Ok(_) => {}
        }
        let text = fs::read_to_string(&path).map_err(|error| named(error.to_string()))?;
        Self::parse(&text).map_err(named)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let line_of = |offset: usize| text[..offset].matches('\n').count() + 1;
        let table = DeTable::parse(text).map_err(|error| {
            let line = line_of(error.span().map_or(0, |span| span.start));
            format!("line {line}: {}", error.message())
        })?;
        let mut settings = Self::default();
        for (key, value) in table.get_ref() {
            let set = settings.set(key.get_ref(), value.get_ref());
            set.map_err(|reason| format!("line {}: {reason}", line_of(key.span().start)))?;
        }
        Ok(settings)
    }

    fn set(&mut self, key: &str, value: &DeValue<'_>) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("`{key}` must be {what}"));
        let text = match value {
            DeValue::String(text) => Some(&**text),
            _ => None,
        };
        let number = |most: u64| match value {
            DeValue::Integer(number) => {
                let number = u64::from_str_radix(number.as_str(), number.radix()).ok()?;
                (1..=most).contains(&number).then_some(number)
            }
            _ => None,
        };
        let milliseconds = |most| number(most).map(Duration::from_millis);
        match (key, text) {
            ("title", Some(title)) => self.title = Some(title.to_owned()),
            ("title", None) => return wrong("a text"),
            ("name", Some(name)) if is_name(name) => self.name = Some(name.to_owned()),
            ("name", _) => {
                return wrong("a name of lower-case letters, digits and `_`, such as \"board\"");
            }
            ("access", Some("anyone")) => self.access = AppAccess::Anyone,
            ("access", Some("users")) => self.access = AppAccess::Users,
            ("access", Some(other)) if other.strip_prefix("group:").is_some_and(is_group) => {
                self.access = AppAccess::Group(other["group:".len()..].to_owned());
            }
            ("access", _) => return wrong("\"anyone\", \"users\" or \"group:NAME\""),
            ("compress", _) => match value {
                DeValue::Boolean(compression) => self.compression = Some(*compression),
                _ => return wrong("true or false"),
            },
            ("memory_mb", _) => match number(4096).and_then(|number| number.try_into().ok()) {
                Some(number) => self.memory = number,
                None => return wrong("a number of mebibytes from 1 to 4096"),
            },
            ("timeout_ms", _) => match milliseconds(60_000) {
                Some(time) => self.run_time = time,
                None => return wrong("a number of milliseconds from 1 to 60000"),
            },
            ("await_ms", _) => match milliseconds(3_600_000) {
                Some(time) => self.await_time = time,
                None => return wrong("a number of milliseconds from 1 to 3600000"),
            },
            ("start", _) => match value {
                DeValue::Boolean(starts) => self.starts = *starts,
                _ => return wrong("true or false"),
            },
            _ => {
                let hint =
                    nearest(KEYS.into_iter(), key).map(|near| format!("; did you mean `{near}`?"));
                let keys = KEYS.join(", ");
                return Err(format!(
                    "unknown key `{key}`{}: the keys are {keys}",
                    hint.unwrap_or_default()
                ));
            }
        }
        Ok(())
    }
}

/// Whether a text is a name for tables.
fn is_name(name: &str) -> bool {
    (1..=40).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_group(name: &str) -> bool {
    !name.is_empty() && name.len() <= 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_all_keys() {
        let settings = AppSettings::parse(
            "title = \"Board\"\nname = \"forum\"\naccess = \"group:staff\"\ncompress = true\nmemory_mb = 8\ntimeout_ms = 50\nawait_ms = 1000\nstart = true\n",
        );
        let expected = AppSettings {
            title: Some("Board".to_owned()),
            compression: Some(true),
            name: Some("forum".to_owned()),
            access: AppAccess::Group("staff".to_owned()),
            memory: 8,
            run_time: Duration::from_millis(50),
            await_time: Duration::from_secs(1),
            starts: true,
        };
        assert_eq!(settings, Ok(expected));
        assert_eq!(AppSettings::parse(""), Ok(AppSettings::default()));
        let access = |text: &str| AppSettings::parse(text).unwrap().access;
        assert_eq!(access("access = \"users\""), AppAccess::Users);
        assert_eq!(access("access = \"anyone\""), AppAccess::Anyone);
    }

    #[test]
    fn names_the_key_and_the_correction() {
        for (text, message) in [
            ("titel = \"a\"", "unknown key `titel`; did you mean `title`?: the keys are title,"),
            ("title = 1", "`title` must be a text"),
            ("compress = \"on\"", "`compress` must be true or false"),
            ("name = \"A b\"", "`name` must be a name of lower-case letters"),
            ("name = \"1a\"", "`name` must be a name of lower-case letters"),
            ("access = \"all\"", "`access` must be \"anyone\", \"users\" or \"group:NAME\""),
            ("access = \"group:\"", "`access` must be"),
            ("memory_mb = 0", "`memory_mb` must be a number of mebibytes from 1 to 4096"),
            ("memory_mb = \"8\"", "`memory_mb` must be"),
            ("timeout_ms = -1", "`timeout_ms` must be a number of milliseconds"),
            ("await_ms = 3600001", "`await_ms` must be a number of milliseconds"),
            ("start = 1", "`start` must be true or false"),
            ("title = ", ""),
        ] {
            let error = AppSettings::parse(text).unwrap_err();
            let reason = error.strip_prefix("line 1: ");
            assert!(reason.is_some_and(|own| own.starts_with(message)), "{text}: {error}");
        }
    }

    #[test]
    fn rejects_an_unreadable_file() {
        let folder = crate::scripts::testing::Folder::with(&[("app.toml/x", "")]);
        let error = AppSettings::in_folder(folder.path()).unwrap_err();
        assert!(error.contains("app.toml: "), "{error}");
        let long = "#".repeat(70_000);
        let folder = crate::scripts::testing::Folder::with(&[("app.toml", &long)]);
        let error = AppSettings::in_folder(folder.path()).unwrap_err();
        assert!(error.ends_with("it has more than 65536 bytes"), "{error}");
    }
}
