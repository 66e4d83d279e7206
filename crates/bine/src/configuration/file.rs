//! Parsing of configuration files, with the line of each fault.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, Key, Kind, Set};
use super::{LONGEST, Origin, Setting, Value};

/// The content of a configuration file.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) values: Vec<Setting>,
    pub(super) sites: Vec<SiteTable>,
}

/// A `[[site]]` table.
#[derive(Clone, Debug)]
pub(super) struct SiteTable {
    pub(super) line: usize,
    /// Each host with its line.
    pub(super) hosts: Vec<(String, usize)>,
    pub(super) values: Vec<Setting>,
}

/// The reason why a file is invalid, and the line, counted from 1.
#[derive(Debug)]
pub(super) struct FileFault {
    pub(super) line: usize,
    pub(super) reason: String,
}

impl Contents {
    /// Parses a file. Relative paths are relative to `folder`.
    pub(super) fn parse(bytes: &[u8], folder: &Path) -> Result<Self, FileFault> {
        let fault = |valid: &[u8], reason: &str| FileFault {
            line: valid.split(|byte| *byte == b'\n').count(),
            reason: reason.to_owned(),
        };
        if bytes.len() as u64 > LONGEST {
            return Err(fault(
                &bytes[..LONGEST as usize],
                "longer than a configuration file may be",
            ));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|error| fault(&bytes[..error.valid_up_to()], "not UTF-8 text"))?;
        let reader = TableReader { text, folder };
        let table = DeTable::parse(text).map_err(|error| {
            reader.fault(error.span().map_or(0, |span| span.start), error.message().to_owned())
        })?;
        reader.read(table.get_ref())
    }
}

/// Extracts a few keys from a file that may be invalid elsewhere.
pub(super) fn extract_keys(bytes: &[u8], folder: &Path, names: &[&str]) -> Vec<Setting> {
    let text = String::from_utf8_lossy(bytes);
    let (table, _errors) = DeTable::parse_recoverable(&text);
    let reader = TableReader { text: &text, folder };
    let known = |(key, value): (&Spanned<_>, _)| {
        let key = keys::find(names.iter().find(|name| *key.get_ref() == **name)?)?;
        reader.given(key, value).ok()
    };
    table.get_ref().iter().filter_map(known).collect()
}

struct TableReader<'t> {
    text: &'t str,
    folder: &'t Path,
}

impl TableReader<'_> {
    fn read(&self, table: &DeTable<'_>) -> Result<Contents, FileFault> {
        let mut contents = Contents::default();
        for (key, value) in table {
            let (name, at) = (key.get_ref(), key.span().start);
            if name == "site" {
                contents.sites = self.sites(value)?;
                continue;
            }
            let known =
                keys::find(name).ok_or_else(|| self.fault(at, keys::unknown("setting `", name)))?;
            contents.values.push(self.given(known, value)?);
        }
        Ok(contents)
    }

    fn sites(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<SiteTable>, FileFault> {
        let wrong = |at| self.fault(at, "a site needs the line [[site]]".to_owned());
        let DeValue::Array(tables) = value.get_ref() else {
            return Err(wrong(value.span().start));
        };
        let site = |table: &Spanned<DeValue<'_>>| match table.get_ref() {
            DeValue::Table(entries) => self.site(self.line(table.span().start), entries),
            _ => Err(wrong(table.span().start)),
        };
        tables.iter().map(site).collect()
    }

    fn site(&self, line: usize, entries: &DeTable<'_>) -> Result<SiteTable, FileFault> {
        let mut site = SiteTable { line, hosts: Vec::new(), values: Vec::new() };
        for (key, value) in entries {
            let (name, at) = (key.get_ref(), key.span().start);
            if name == "hosts" {
                for host in list(value) {
                    let DeValue::String(text) = host.get_ref() else {
                        let reason = "hosts: write [\"example.org\", \"*.example.org\"]";
                        return Err(self.fault(host.span().start, reason.to_owned()));
                    };
                    site.hosts.push((text.to_string(), self.line(host.span().start)));
                }
                continue;
            }
            let known =
                keys::find(name).ok_or_else(|| self.fault(at, keys::unknown_to_site(name)))?;
            if matches!(known.set, Set::Server(_)) {
                let reason = format!(
                    "`{name}` is a key of the server, not of a site: write it above [[site]]"
                );
                return Err(self.fault(at, reason));
            }
            site.values.push(self.given(known, value)?);
        }
        Ok(site)
    }

    fn given(&self, key: &'static Key, value: &Spanned<DeValue<'_>>) -> Result<Setting, FileFault> {
        if !key.is_list() && matches!(value.get_ref(), DeValue::Array(_)) {
            let reason = format!("{}: write one {}, not a list", key.name, key.value);
            return Err(self.fault(value.span().start, reason));
        }
        let one = |value: &Spanned<DeValue<'_>>| {
            let at = value.span().start;
            let text = match (key.kind, value.get_ref()) {
                (Kind::Tables { paths }, DeValue::Table(entries)) => {
                    self.on_one_line(key, entries, paths)?
                }
                (_, value) => plain(value),
            };
            let text =
                text.ok_or_else(|| self.fault(at, format!("{}: write {}", key.name, key.value)))?;
            Ok(Value { text: key.beneath(self.folder, text), line: self.line(at) })
        };
        let values = list(value).iter().map(|value| one(value)).collect::<Result<_, _>>()?;
        Ok(Setting { key, origin: Origin::File, values })
    }

    /// Formats a table in words like `key=value`, as it would appear on a command line.
    /// The values of the keys in `paths` are paths.
    fn on_one_line(
        &self,
        key: &Key,
        entries: &DeTable<'_>,
        paths: &[&str],
    ) -> Result<Option<String>, FileFault> {
        let mut words = Vec::new();
        for (name, value) in entries {
            let (name, at) = (name.get_ref(), name.span().start);
            let is_path = paths.contains(&&**name);
            let beneath = |text: String| match self.folder.join(&text).to_str() {
                Some(path) if is_path => path.to_owned(),
                _ => text,
            };
            let values: Option<Vec<_>> = list(value)
                .iter()
                .map(|value| with_options(value.get_ref()).map(beneath))
                .collect();
            let is_word = |text: &String| !text.contains(|c: char| c.is_whitespace() || c == ',');
            match values.filter(|values| values.iter().all(is_word)) {
                Some(values) => words.push(format!("{name}={}", values.join(","))),
                None => {
                    let reason = format!(
                        "{}: `{name}` must be a word without spaces and commas, or a list of such words or of tables with `url`",
                        key.name
                    );
                    return Err(self.fault(at, reason));
                }
            }
        }
        Ok(Some(words.join(" ")))
    }

    fn fault(&self, at: usize, reason: String) -> FileFault {
        FileFault { line: self.line(at), reason }
    }

    fn line(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        before.split(|byte| *byte == b'\n').count()
    }
}

/// The members of a list. A single value counts as a list of one.
fn list<'v, 't>(value: &'v Spanned<DeValue<'t>>) -> Vec<&'v Spanned<DeValue<'t>>> {
    match value.get_ref() {
        DeValue::Array(values) => values.iter().collect(),
        _ => vec![value],
    }
}

/// Formats a value, or a table with an `url`, which becomes a word with options: `url;key=value`.
fn with_options(value: &DeValue<'_>) -> Option<String> {
    let DeValue::Table(entries) = value else { return plain(value) };
    let mut word = plain(entries.get("url")?.get_ref())?;
    for (name, value) in entries {
        if name.get_ref() != "url" {
            let value = plain(value.get_ref())?;
            word = format!("{word};{}={value}", name.get_ref());
        }
    }
    Some(word)
}

/// Formats a TOML value as it would appear on a command line.
fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(true) => Some("on".to_owned()),
        DeValue::Boolean(false) => Some("off".to_owned()),
        _ => None,
    }
}
