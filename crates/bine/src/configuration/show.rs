//! Printing of a configuration: as help text, and as a file with the origin of each value.

use std::fmt::Write as _;

use bine_server::scheduler::SCHEDULERS;

use super::keys::{KEYS, Kind, Set};
use super::{Configuration, Origin, Setting, environment_name};

impl Configuration {
    /// The text that `--help` prints after a program's own usage line.
    pub(crate) fn help() -> String {
        let mut help = String::from("Options, and keys of a configuration file:\n");
        let more = [
            ("config", "FILE", "a TOML file with these keys; else $BINE_CONFIG, else ./bine.toml"),
            ("supervise", "", "restart the server when it dies; its addresses stay open"),
            ("routes", "", "print the routes and their access rules; with --json as JSON"),
            ("help", "", "print this help"),
        ];
        let own = KEYS.iter().map(|key| {
            let default = match key.default {
                [] => String::new(),
                words => format!(" ({})", words.join(" ")),
            };
            (key.name, key.value, format!("{}{default}", key.help))
        });
        let more = more.map(|(name, value, text)| (name, value, text.to_owned()));
        for (name, value, text) in own.chain(more) {
            let option = format!("--{name} {value}");
            // Writing into a String cannot fail.
            let _ = writeln!(help, "  {option:<34} {text}");
        }
        help.push_str("\nTIME is a number with ms, s or m; BYTES may end in k, m or g.\n");
        help.push_str("Each key is also an environment variable: BINE_IDLE_TIMEOUT=10s. A flag overrides a variable, which overrides the file.\n");
        help.push_str("Exit status: 0 success, 1 a resource is not available, 2 invalid usage or configuration.\n");
        help.push_str("\nSchedulers:\n");
        for (name, text) in SCHEDULERS {
            let _ = writeln!(help, "  {name:<34} {text}");
        }
        help
    }

    /// The whole configuration as a file, with a comment that names the origin of each value.
    pub(crate) fn shown(&self) -> String {
        let mut text = String::new();
        for given in &self.given {
            self.show(given, &mut text);
        }
        for (table, given) in &self.site_settings {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "\n[[site]]  # {}", self.place(table.line));
            let hosts: Vec<String> = table.hosts.iter().map(|(host, _)| quoted(host)).collect();
            let _ = writeln!(text, "hosts = [{}]", hosts.join(", "));
            let own = |given: &&Setting| {
                table.values.iter().any(|value| std::ptr::eq(value.key, given.key))
            };
            for given in given.iter().filter(own) {
                self.show(given, &mut text);
            }
        }
        text
    }

    fn show(&self, given: &Setting, text: &mut String) {
        let key = given.key;
        let values: Vec<String> =
            given.values.iter().map(|value| literal(key.kind, &value.text)).collect();
        // Writing into a String cannot fail.
        let _ = match &values[..] {
            [] if given.origin == Origin::Default => {
                writeln!(text, "# {} is not set: {}", key.name, key.help)
            }
            _ => {
                let value = if key.is_list() {
                    format!("[{}]", values.join(", "))
                } else {
                    values.last().cloned().unwrap_or_default()
                };
                writeln!(text, "{} = {value}  # {}", key.name, self.origin(given))
            }
        };
    }

    fn origin(&self, given: &Setting) -> String {
        let name = given.key.name;
        match given.origin {
            Origin::Default => "default".to_owned(),
            Origin::File => self.place(given.values.first().map_or(0, |value| value.line)),
            Origin::Environment => format!("environment {}", environment_name(name)),
            Origin::Flag if matches!(given.key.set, Set::Site(_)) && name == "root" => {
                "command line".to_owned()
            }
            Origin::Flag => format!("--{name}"),
        }
    }

    fn place(&self, line: usize) -> String {
        let file = self.file.as_deref().map_or("bine.toml".into(), |path| path.to_string_lossy());
        // A path may contain line breaks, which would end the comment.
        let file: String =
            file.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
        format!("{file}:{line}")
    }
}

fn literal(kind: Kind, text: &str) -> String {
    let is_number = !text.is_empty()
        && text.len() < 19
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    match (kind, text) {
        (Kind::Switch, "on" | "true" | "yes" | "1") => "true".to_owned(),
        (Kind::Switch, "off" | "false" | "no" | "0") => "false".to_owned(),
        (Kind::Word, _) if is_number => text.to_owned(),
        _ => quoted(text),
    }
}

/// Formats a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            _ if letter.is_control() => {
                // Writing into a String cannot fail.
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
