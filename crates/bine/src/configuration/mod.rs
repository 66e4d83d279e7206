//! The configuration of a server, and the origin of each value: a flag takes precedence over an
//! environment variable, that over the configuration file, and that over the default.

mod choices;
mod file;
mod keys;
mod show;
pub(crate) mod values;

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bine_server::{Address, Listen, Settings, User, inherited};
use bine_store::Sync;

use crate::acme_choices::AcmeChoices;
use crate::health::HealthChoices;
use crate::hosts::HostChoice;
use crate::security::HeaderChoices;
use crate::sites::{HostPattern, SiteChoices};
use crate::tables::DEFAULT_DATA;

use choices::{Choice, Choices};
use file::{Contents, FileFault, SiteTable};
use keys::{KEYS, Set, groups};

pub(crate) use keys::{Key, KeyGroup, Kind};

/// The configuration of one run.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    /// The settings of the server core.
    pub(crate) settings: Settings,
    /// The destinations and formats of the logs.
    pub(crate) logs: Logs,
    /// `on`, `off`, `acme` or `self-signed`.
    pub(crate) tls: String,
    /// Whether errors display their causes; `None`: the program decides.
    pub(crate) development: Option<bool>,
    /// The certificate authority, and how to contact it.
    pub(crate) acme: AcmeChoices,
    /// Whether clients without TLS are redirected to it; `None`: if the certificate is public.
    pub(crate) redirects_to_https: Option<bool>,
    /// The max-age of Strict-Transport-Security in seconds; `None`: [`HSTS`](crate::security::HSTS)
    /// if the certificate is public.
    pub(crate) hsts: Option<u32>,
    /// The security headers of responses.
    pub(crate) headers: HeaderChoices,
    /// The hosts that the server answers for.
    pub(crate) hosts: HostChoice,
    /// For each address, whether its options include `tls`.
    has_tls_option: Vec<bool>,
    /// The folder of the tables and TLS keys; `None`: everything is in memory.
    pub(crate) data: Option<PathBuf>,
    /// Whether everything is kept in memory, whatever the program's default.
    pub(crate) in_memory: bool,
    /// When a write to tables is acknowledged.
    pub(crate) sync: Sync,
    /// The settings of subsystems.
    choices: Choices,
    /// The user to change to when the addresses are open.
    pub(crate) user: Option<User>,
    /// How health checks are answered.
    pub(crate) health: HealthChoices,
    /// The control socket for `bine reload`.
    pub(crate) control: Control,
    /// The default site, for hosts without a site of their own.
    pub(crate) site: SiteChoices,
    /// Further sites, with their hosts.
    pub(crate) sites: Vec<(Vec<HostPattern>, SiteChoices)>,
    /// Whether the command line has `--help`.
    pub(crate) wants_help: bool,
    /// The file that was read.
    pub(crate) file: Option<PathBuf>,
    /// Warnings about environment variables that resemble a setting.
    pub(crate) warnings: Vec<String>,
    given: Vec<Setting>,
    site_settings: Vec<(SiteTable, Vec<Setting>)>,
}

/// The destinations and formats of the logs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Logs {
    /// The file of the access log; `None`: disabled.
    pub(crate) access: Option<PathBuf>,
    /// The line format of the access log.
    pub(crate) format: String,
    /// The policy when its writer is too slow: `drop` or `wait`.
    pub(crate) when_full: String,
    /// The file of the server's own log; `None`: standard error.
    pub(crate) error: Option<PathBuf>,
    /// The lowest severity that is logged.
    pub(crate) level: String,
}

/// The path of the control socket.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Control {
    /// In the run folder, if there is one.
    #[default]
    Usual,
    /// There is no socket.
    Off,
    /// This path.
    At(PathBuf),
}

/// A key with its values.
#[derive(Clone, Debug)]
struct Setting {
    key: &'static Key,
    origin: Origin,
    values: Vec<Value>,
}

#[derive(Clone, Debug)]
struct Value {
    text: String,
    /// The line in the configuration file, from 1; 0 for values of other origin.
    line: usize,
}

/// The origin of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Origin {
    Default,
    File,
    Environment,
    Flag,
}

/// The sources of a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The command line, without the program's name.
    pub(crate) arguments: Vec<OsString>,
    /// The names and values of environment variables.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The default configuration file, `bine.toml`, which is read if it exists.
    pub(crate) default_file: Option<PathBuf>,
    /// The default data folder.
    pub(crate) default_data: Option<PathBuf>,
}

/// The longest configuration file, in bytes; a longer one is a mistake, such as a device or a log.
const LONGEST: u64 = 1 << 20;
/// The prefix of environment variables.
const PREFIX: &str = "BINE_";

impl Sources {
    /// The sources of this process, with these arguments.
    pub(crate) fn of_process(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: std::env::vars_os().collect(),
            default_file: Some("bine.toml".into()),
            default_data: None,
        }
    }

    /// Reads all sources.
    ///
    /// # Errors
    ///
    /// Returns what is invalid, where, and what would be valid.
    pub(crate) fn read(&self) -> Result<Configuration, String> {
        let flags = Flags::read(&self.arguments)?;
        if flags.wants_help {
            return Ok(Configuration { wants_help: true, ..Configuration::default() });
        }
        let file = self.file(&flags);
        let contents = match &file {
            Some(path) => read_file(path)?,
            None => Contents::default(),
        };
        self.assemble(flags, file, contents)
    }

    /// The control socket and the data folder of this configuration, as far as they can be
    /// determined. Faults of the configuration file are ignored here: the server reports them.
    ///
    /// # Errors
    ///
    /// The command line or the environment is invalid.
    pub(crate) fn control(&self) -> Result<Option<(Control, Option<PathBuf>)>, String> {
        let flags = Flags::read(&self.arguments)?;
        if flags.wants_help {
            return Ok(None);
        }
        let file = self.file(&flags);
        let values = match &file {
            Some(path) => {
                let folder = path.parent().unwrap_or(Path::new(""));
                let bytes = read_bytes(path).unwrap_or_default();
                file::extract_keys(&bytes, folder, &["control", "data"])
            }
            None => Vec::new(),
        };
        let known = self.assemble(flags, file, Contents { values, sites: Vec::new() })?;
        Ok(Some((known.control, known.data)))
    }

    fn assemble(
        &self,
        flags: Flags,
        file: Option<PathBuf>,
        contents: Contents,
    ) -> Result<Configuration, String> {
        let (environment, warnings) = self.read_environment()?;
        let mut given: Vec<Setting> = KEYS.iter().copied().map(Setting::default_of).collect();
        let Contents { values, sites } = contents;
        for layer in values.into_iter().chain(environment).chain(flags.given) {
            overlay(&mut given, layer);
        }
        let mut own = Configuration { file, warnings, ..Configuration::default() };
        own.choose(given, sites)?;
        if own.data.is_none() && !own.in_memory {
            own.data.clone_from(&self.default_data);
            if own.data.is_none() && own.adds_content() {
                own.data = Some(DEFAULT_DATA.into());
            }
        }
        Ok(own)
    }

    fn file(&self, flags: &Flags) -> Option<PathBuf> {
        let named = self.environment.iter().find(|(name, _)| name == "BINE_CONFIG");
        let usual = self.default_file.as_ref().filter(|path| path.exists());
        flags.config.clone().or_else(|| named.map(|(_, path)| path.into())).or(usual.cloned())
    }

    fn read_environment(&self) -> Result<(Vec<Setting>, Vec<String>), String> {
        let (mut given, mut warnings) = (Vec::new(), Vec::new());
        for (name, value) in &self.environment {
            let Some(word) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
                continue;
            };
            let word = word.to_ascii_lowercase().replace('_', "-");
            let Some(key) = keys::find(&word) else {
                // Other programs may use the prefix too: a name that resembles no key belongs to
                // them.
                if let Some(near) = keys::nearest_key(&word).filter(|_| word != "config") {
                    let near = environment_name(near);
                    warnings.push(format!(
                        "{} in the environment is no setting; did you mean {near}?",
                        name.display()
                    ));
                }
                continue;
            };
            let value =
                value.to_str().ok_or_else(|| format!("{}: not UTF-8 text", name.display()))?;
            let values = key.split(value).map(|text| Value { text: text.to_owned(), line: 0 });
            given.push(Setting { key, origin: Origin::Environment, values: values.collect() });
        }
        Ok((given, warnings))
    }
}

/// The settings of the command line.
#[derive(Default)]
struct Flags {
    config: Option<PathBuf>,
    wants_help: bool,
    given: Vec<Setting>,
}

impl Flags {
    fn read(arguments: &[OsString]) -> Result<Self, String> {
        let mut flags = Self::default();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
            match argument {
                lexopt::Arg::Long("help") | lexopt::Arg::Short('h') => {
                    flags.wants_help = true;
                    return Ok(flags);
                }
                lexopt::Arg::Long("config") => {
                    let path = parser.value().map_err(|error| error.to_string())?;
                    flags.config = Some(path.into());
                }
                lexopt::Arg::Long(name) => {
                    let name = name.to_owned();
                    let known = keys::find(&name);
                    let key = known.ok_or_else(|| keys::unknown("option `--", &name))?;
                    let value = parser.value().map_err(|error| error.to_string())?;
                    let text =
                        value.into_string().map_err(|_| format!("--{name}: not UTF-8 text"))?;
                    if name == "scheduler" && text == "help" {
                        flags.wants_help = true;
                        return Ok(flags);
                    }
                    flags.add(key, text);
                }
                other => return Err(other.unexpected().to_string()),
            }
        }
        Ok(flags)
    }

    /// A repeated flag extends a list; for other keys the last one counts.
    fn add(&mut self, key: &'static Key, text: String) {
        let value = Value { text, line: 0 };
        match self.given.iter_mut().find(|given| std::ptr::eq(given.key, key)) {
            Some(given) if key.is_list() => given.values.push(value),
            Some(given) => given.values = vec![value],
            None => self.given.push(Setting { key, origin: Origin::Flag, values: vec![value] }),
        }
    }
}

impl Configuration {
    /// The settings of a subsystem.
    pub(crate) fn choice<T: Choice + Clone + Default>(&self) -> T {
        self.choices.get()
    }

    /// The settings of a subsystem, for its keys to change.
    pub(crate) fn choice_mut<T: Choice + Default>(&mut self) -> &mut T {
        self.choices.get_mut()
    }

    fn choose(&mut self, given: Vec<Setting>, tables: Vec<SiteTable>) -> Result<(), String> {
        for each in &given {
            self.apply(each)?;
        }
        let listens_by_default =
            given.iter().any(|each| each.key.name == "listen" && each.origin == Origin::Default);
        let passed: Vec<Listen> = inherited().into_iter().map(Listen::on).collect();
        if listens_by_default && !passed.is_empty() {
            self.settings.listeners = passed;
            self.has_tls_option.clear();
        }
        if self.tls != "off" {
            let has_tls_options =
                self.has_tls_option.iter().copied().chain(std::iter::repeat(false));
            for (listen, has_tls_option) in self.settings.listeners.iter_mut().zip(has_tls_options)
            {
                // A client on a Unix socket is on this machine.
                listen.tls |= !has_tls_option && !matches!(listen.address, Address::Unix(_));
            }
        }
        if self.redirects_to_https == Some(true)
            && self.settings.proxies.is_empty()
            && !self.settings.listeners.iter().any(|listen| listen.tls)
        {
            return Err(
                "https-redirect: no address speaks TLS, and no proxy is trusted; see `tls` and \
                        `trusted-proxies`"
                    .to_owned(),
            );
        }
        if self.settings.proxies.is_empty()
            && let Some(listen) = self.settings.listeners.iter().find(|listen| listen.proxy)
        {
            return Err(format!(
                "listen: {} expects PROXY headers (`proxy=on`), but no proxy is trusted; name the \
                 proxies that connect to it in `trusted-proxies`",
                listen.address
            ));
        }
        for table in tables {
            let mut own = given.clone();
            table.values.iter().for_each(|layer| overlay(&mut own, layer.clone()));
            let mut site = SiteChoices::default();
            for each in &own {
                if let Set::Site(set) = each.key.set {
                    self.each_value(each, |text| set(&mut site, text))?;
                }
            }
            let wrong = |reason: String| self.line_error(table.line, &reason);
            if table.hosts.is_empty() {
                return Err(wrong("a site says for whom it is: hosts = [\"example.org\"]".into()));
            }
            let mut hosts = Vec::new();
            for (host, line) in &table.hosts {
                let pattern = HostPattern::parse(host)
                    .map_err(|reason| self.line_error(*line, &format!("hosts: {reason}")))?;
                let others = self.sites.iter().flat_map(|(hosts, _)| hosts).chain(&hosts);
                if others.into_iter().any(|other| *other == pattern) {
                    let reason = format!("hosts: `{host}` has a site already");
                    return Err(self.line_error(*line, &reason));
                }
                hosts.push(pattern);
            }
            self.sites.push((hosts, site));
            self.site_settings.push((table, own));
        }
        self.given = given;
        Ok(())
    }

    fn apply(&mut self, given: &Setting) -> Result<(), String> {
        match given.key.set {
            Set::Server(set) => {
                let mut own = std::mem::take(self);
                let applied = own.each_value_mut(given, set);
                *self = own;
                applied
            }
            Set::Site(set) => {
                let mut site = std::mem::take(&mut self.site);
                let applied = self.each_value(given, |text| set(&mut site, text));
                self.site = site;
                applied
            }
        }
    }

    fn each_value_mut(
        &mut self,
        given: &Setting,
        set: fn(&mut Self, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        for value in &given.values {
            set(self, &value.text).map_err(|reason| self.value_error(given, value, &reason))?;
        }
        Ok(())
    }

    fn each_value(
        &self,
        given: &Setting,
        mut set: impl FnMut(&str) -> Result<(), String>,
    ) -> Result<(), String> {
        for value in &given.values {
            set(&value.text).map_err(|reason| self.value_error(given, value, &reason))?;
        }
        Ok(())
    }

    fn value_error(&self, given: &Setting, value: &Value, reason: &str) -> String {
        let name = given.key.name;
        match given.origin {
            Origin::File => self.line_error(value.line, &format!("{name}: {reason}")),
            Origin::Environment => format!("{}={}: {reason}", environment_name(name), value.text),
            Origin::Flag | Origin::Default => format!("--{name} {}: {reason}", value.text),
        }
    }

    fn line_error(&self, line: usize, reason: &str) -> String {
        let file = self.file.as_deref().unwrap_or(Path::new("bine.toml"));
        format!("{}:{line}: {reason}", file.display())
    }

    /// Whether the settings of a subsystem give any program content.
    pub(crate) fn adds_content(&self) -> bool {
        groups().any(|group| (group.adds_content)(self))
    }

    /// Whether any site has a folder.
    pub(crate) fn names_files(&self) -> bool {
        let mut sites = self.sites.iter().map(|(_, site)| site).chain([&self.site]);
        sites.any(|site| site.root.is_some())
    }

    /// The keys that differ in `newer` and need a restart.
    pub(crate) fn needs_restart(&self, newer: &Self) -> Vec<&'static str> {
        let texts = |given: &Setting| -> Vec<String> {
            given.values.iter().map(|value| value.text.clone()).collect()
        };
        let pairs = self.given.iter().zip(&newer.given);
        let changed = pairs.filter(|(old, new)| old.key.is_fixed && texts(old) != texts(new));
        changed.map(|(old, _)| old.key.name).collect()
    }
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            logs: Logs::default(),
            tls: String::new(),
            development: None,
            acme: AcmeChoices::default(),
            redirects_to_https: None,
            hsts: None,
            headers: HeaderChoices::default(),
            hosts: HostChoice::default(),
            has_tls_option: Vec::new(),
            data: None,
            in_memory: false,
            choices: Choices::default(),
            sync: Sync::Commit,
            user: None,
            health: HealthChoices { is_told: true, is_logged: false },
            control: Control::Usual,
            site: SiteChoices::default(),
            sites: Vec::new(),
            wants_help: false,
            file: None,
            warnings: Vec::new(),
            given: Vec::new(),
            site_settings: Vec::new(),
        }
    }
}

impl Setting {
    fn default_of(key: &'static Key) -> Self {
        let values = key.default.iter().map(|text| Value { text: (*text).to_owned(), line: 0 });
        Self { key, origin: Origin::Default, values: values.collect() }
    }
}

/// Replaces the values of a key by those of `layer`.
fn overlay(given: &mut [Setting], layer: Setting) {
    if let Some(own) = given.iter_mut().find(|own| std::ptr::eq(own.key, layer.key)) {
        *own = layer;
    }
}

fn environment_name(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase().replace('-', "_"))
}

/// Reads the whole file, or enough to detect that it is too long.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_file(path: &Path) -> Result<Contents, String> {
    let bytes =
        read_bytes(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Contents::parse(&bytes, folder)
        .map_err(|FileFault { line, reason }| format!("{}:{line}: {reason}", path.display()))
}

#[cfg(test)]
mod tests;
